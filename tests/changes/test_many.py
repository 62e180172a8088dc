"""Many processes change one registry: each answer is the contract's, no change is lost."""

import os

from registry.db.read.listing import Filters
from tests.program import Script

PROCESSES = 8
CHANGES = int(os.environ.get("SKILL_REGISTRY_TEST_CHANGES", "8"))
"""Changes a process; set it higher for a longer run, as `make test-long` does."""

WORKER = """
import json, random, sys
from registry import Settings, SkillRegistry
from registry.catalog.resolve import resolve
from registry.changes.create import create_files
from registry.changes.update import update_files
from registry.errors import (
    ChangeRefused, SkillChangedOnDisk, SkillExists, SkillMissing, SkillNotFound
)
path, number, changes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(number)
done = {"made": [], "lost": 0}
with SkillRegistry.open(path, settings=Settings()) as registry:
    source = registry.sources()[0]
    for turn in range(changes):
        mine, shared = f"own-{number}-{turn}", f"shared-{rng.randrange(6)}"
        text = lambda name: f"---\\nname: {name}\\ndescription: By {number} in {turn}.\\n---\\n".encode()
        create_files(registry.core, source, mine, mine, {"SKILL.md": text(mine)})
        done["made"].append(mine)
        try:
            what = rng.randrange(4)
            if what == 0:
                create_files(registry.core, source, shared, shared, {"SKILL.md": text(shared)})
            elif what == 1:
                update_files(registry.core, resolve(registry.core.reader, shared), {"SKILL.md": text(shared)})
            elif what == 2:
                registry.delete(shared)
            else:
                registry.restore(shared)
        except (SkillExists, SkillMissing, SkillNotFound, SkillChangedOnDisk, ChangeRefused):
            done["lost"] += 1
print(json.dumps(done))
"""


def test_mixed_changes_of_many_processes_neither_fail_nor_get_lost(registry, root):
    registry.sync(str(root))
    running = [Script(WORKER, registry.path, number, CHANGES) for number in range(PROCESSES)]
    for script in running:
        ran = script.end(600)
        # Of two that were deleted under one name one comes back, and the other is named.
        said = ("Restored from the trash", "still in the trash: ")
        others = [line for line in ran.err.splitlines() if not any(one in line for one in said)]
        assert (ran.status, others) == (0, [])
    listed = {skill.name for skill in registry.list(Filters(all=True))}
    own = {f"own-{number}-{turn}" for number in range(PROCESSES) for turn in range(CHANGES)}
    assert own <= listed
    assert registry.check_database() == []
    assert registry.core.reader.rows("SELECT count(*) FROM journal") == [(0,)]
    report = registry.sync(verify=True)
    assert (report.added, report.updated, report.moved, report.removed) == ((), (), (), ())
    on_disk = {path.parent.name for path in root.glob("*/SKILL.md")}
    assert listed == on_disk
    assert len({trashed.id for trashed in registry.trash()}) == len(registry.trash())
