"""``python -m symattn.cli``: the command line where no script is installed."""

from __future__ import annotations

import sys

from . import main

sys.exit(main())
