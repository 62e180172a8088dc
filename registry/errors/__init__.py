"""All errors of the registry; each has one sentence, and its details as attributes.

The sentence names the problem, and the skill, file or source with the problem. The interface that
shows the error adds the next step in its own words (`cli/hints.py`, `toolsets/native.py`): a
command for people, a tool for models.
"""

from registry.errors.base import *
from registry.errors.database import *
from registry.errors.skills import *
from registry.errors.sources import *
