"""What `make test-full` runs beyond `make test`.

A test, or one of its parameters, that it alone runs is marked `@pytest.mark.full("why")`; tests
that both run, and it for longer, ask `FULL` how long.
"""

from __future__ import annotations

import os

FULL = os.environ.get("OMNIDATA_TEST_FULL") == "1"
