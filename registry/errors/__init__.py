"""Everything that can go wrong: an error owns one sentence, and its facts as attributes.

The sentence says what happened, to what. The face that shows the error adds the next step in
its own words (`cli/hints.py`, `toolsets/native.py`): a command for people, a tool for models.
"""

from registry.errors.base import *
from registry.errors.database import *
from registry.errors.skills import *
from registry.errors.sources import *
