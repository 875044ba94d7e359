"""OmniGUI: smartphone episodes whose steps need sight, hearing and motion."""
