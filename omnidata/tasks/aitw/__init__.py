"""Android in the Wild, Android in the Zoo and CAGUI."""
