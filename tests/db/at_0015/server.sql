INSERT INTO audit VALUES (1, '2026-11-23T20:10:23Z', 'ann', 'ann-pc', NULL, NULL, 'source added', 'mine', '{"path" : "/home/ann/skills", "host" : "ann-pc", "owner" : "ann"}');
INSERT INTO changes VALUES (1, '2e0e9a06d7be64f2', 'ann-pc', 'update', '74acd975721637a2', 'knots', 'mine', 'knots', 'sha256:211b8fe11aa43cc4820756513d543e64ef1c6c759ccb97307158f66bbac02f15', 'sha256:042dade486f04b3bc655f5416254c042dd7238913cc6453c8694b254d0b655f4', '2026-11-23T20:10:23Z', '4bf9bff32e9d8599278ba75b4e542af08cbef754fcd51be828d5937a0d2e9c41', 'ann', NULL, NULL);
INSERT INTO changes VALUES (2, 'a53da3e9222f11c2', 'ann-pc', 'update', '74acd975721637a2', 'knots', 'mine', 'knots', 'sha256:042dade486f04b3bc655f5416254c042dd7238913cc6453c8694b254d0b655f4', 'sha256:4e19fd1a039065afb17664edc22925f1ae65911bbfb2df857dead000652c6fbc', '2026-11-23T20:10:23Z', '2facfae5c6449867cd2b7401fa631124dfbcad29fa639976866599e9f5bfed40', 'ann', NULL, NULL);
INSERT INTO changes VALUES (3, 'c89fdc6ed59e0449', 'ann-pc', 'delete', 'd5a6bfe1ac651992', 'soup', 'mine', 'soup', 'sha256:933c7a5ddad335c5017d934623ca0cdbd6901eca6a95c697e0ea5e864cdc87e8', NULL, '2026-11-23T20:10:23Z', '550581e3bb8c950849e1153e50a4bca2b54ec5122ce0c41f972993a54f97a4f0', 'ann', NULL, NULL);
INSERT INTO content_uses VALUES ('sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996', 'e340c12b3f694153');
INSERT INTO content_uses VALUES ('sha256:56675c0b3f94cb9b7022cf26f6d4305d7e427d707b42198e8f50dc006f1b1018', '74acd975721637a2');
INSERT INTO content_uses VALUES ('sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61', 'eacd350b486e7bf0');
INSERT INTO content_uses VALUES ('sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9', '74acd975721637a2');
INSERT INTO content_uses VALUES ('sha256:7a2dbac87097d436030041da5f7700e3bbac50cdc826336c189d9e82f058f6c4', 'd5a6bfe1ac651992');
INSERT INTO content_uses VALUES ('sha256:a800a0b1b3dbe3aefe9fdd12ab0328fca8c828a49be84b41affea60ab8756a6c', '74acd975721637a2');
INSERT INTO content_uses VALUES ('sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8', '74acd975721637a2');
INSERT INTO contents VALUES ('sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9', 13, 0, '\x6563686f20626f776c696e650a');
INSERT INTO contents VALUES ('sha256:56675c0b3f94cb9b7022cf26f6d4305d7e427d707b42198e8f50dc006f1b1018', 89, 0, '\x2d2d2d0a6e616d653a206b6e6f74730a6465736372697074696f6e3a205469657320726f7065732e0a746167733a205b726f70652c207361696c696e675d0a2d2d2d0a0a2320486f770a0a5374657020627920737465702e0a');
INSERT INTO contents VALUES ('sha256:a800a0b1b3dbe3aefe9fdd12ab0328fca8c828a49be84b41affea60ab8756a6c', 99, 1, '\x7801158c310a80301004fb7bc582adc903f2027bedc422ea110ef512bc80f87b633303538c738e345e1c7068ae463bdb764ba99235601236dcb93446dd718ab279aa3159c0fcf71e16a5e5b4906b23ea30e48768ac5cb0beb0664f1f72c11fe7');
INSERT INTO contents VALUES ('sha256:7a2dbac87097d436030041da5f7700e3bbac50cdc826336c189d9e82f058f6c4', 67, 0, '\x2d2d2d0a6e616d653a20736f75700a6465736372697074696f6e3a20436f6f6b73206c65656b732e0a2d2d2d0a0a2320536f75700a0a5374697220736c6f776c792e0a');
UPDATE data_version SET number = 7;
INSERT INTO sources VALUES (1, 'mine', '/home/ann/skills', 'personal', 0, 4000000, 1, '2026-11-23T20:10:23Z', '2026-11-23T20:10:23Z', 'ok', 'ann-pc', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'ann', NULL);
INSERT INTO skills VALUES (2, 'e340c12b3f694153', 1, NULL, 1, 'broken', 'broken', 'broken', 0, 'broken', 'broken', 'No description.', NULL, NULL, NULL, NULL, NULL, NULL, '', '2026-11-23T20:10:22Z', '2026-11-23T20:10:22Z', '2026-11-23T20:10:23Z', 'sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996', 'sha256:d69467aea517a75e9e35033fb06c6fd0ba64d172c19fb1f85fbcc370b4b9ea8f', 'SKILL.md', 38, 1, '5:b4bceb5098102c39bde37bcfa65d462c', 1, 'warning', 0, '[]', '[]', '', 1, 0);
INSERT INTO skills VALUES (7, '74acd975721637a2', 1, 6, 1, 'knots', 'knots', 'knots', 0, 'knots', 'knots', 'Ties ropes and lines.', NULL, NULL, NULL, NULL, NULL, NULL, 'rope
sailing', '2023-11-14T22:13:20Z', '2026-11-23T20:10:23Z', '2026-11-23T20:10:23Z', 'sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8', 'sha256:4e19fd1a039065afb17664edc22925f1ae65911bbfb2df857dead000652c6fbc', 'SKILL.md', 117, 2, '5:5bc4a9b0de9c0f875c20ec8a890dd82e', 1, 'warning', 0, '[]', '[]', '', 1, 0);
INSERT INTO skills VALUES (5, 'eacd350b486e7bf0', 1, NULL, 1, 'tents', 'tents', 'tents', 0, 'tents', 'tents', 'Pitches tents.', NULL, NULL, NULL, NULL, NULL, NULL, '', '2023-11-14T22:13:20Z', '2023-11-14T22:13:20Z', '2026-11-23T20:10:23Z', 'sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61', 'sha256:16a0822c9560fe3668da7f429df3384339b55d332dde1e0b47cfefe0731a5e26', 'SKILL.md', 75, 1, '5:43ee07b8431e657010d9ac4fca4b5721', 1, 'ok', 0, '[]', '[]', '', 1, 0);
INSERT INTO diagnostics VALUES (1, 1, 2, 'broken', 'description-from-body', 'warning', 'the skill has no description; the first words of its text are taken', 'SKILL.md', 2, 'add `description:` with what the skill does and when to use it');
INSERT INTO diagnostics VALUES (4, 1, 7, 'knots', 'key-unknown', 'warning', '`tags` is not a key of the specification', 'SKILL.md', 4, 'move it below `metadata` as text, or remove it (known are name, description, license, compatibility, metadata, allowed-tools)');
INSERT INTO documents VALUES (2, '---
name: broken
---

No description.
', 21, '{"name":"broken"}', 1);
INSERT INTO documents VALUES (5, '---
name: tents
description: Pitches tents.
---

# Tents

Hammer the pegs.
', 48, '{"name":"tents","description":"Pitches tents."}', 1);
INSERT INTO documents VALUES (7, '---
name: knots
description: Ties ropes and lines.
tags: [rope, sailing]
---

# How

First the bowline.
', 77, '{"name":"knots","description":"Ties ropes and lines.","tags":["rope","sailing"]}', 1);
INSERT INTO gone VALUES ('d5a6bfe1ac651992', 'soup', 'mine', 'soup', '2023-11-14T22:13:20Z', '2026-11-23T20:10:23Z', 'sha256:933c7a5ddad335c5017d934623ca0cdbd6901eca6a95c697e0ea5e864cdc87e8', 'c89fdc6ed59e0449', 'ann', NULL);
INSERT INTO hosts VALUES ('ann-pc', 'ann');
INSERT INTO revisions VALUES (1, 'e340c12b3f694153', 1, 'broken', 'SKILL.md', 'sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996', 'sha256:d69467aea517a75e9e35033fb06c6fd0ba64d172c19fb1f85fbcc370b4b9ea8f', '2026-11-23T20:10:23Z', '[["SKILL.md", 0, 38, "sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996"]]', NULL, NULL, 'ann', 'ann-pc', NULL, NULL);
INSERT INTO revisions VALUES (2, '74acd975721637a2', 1, 'knots', 'SKILL.md', 'sha256:56675c0b3f94cb9b7022cf26f6d4305d7e427d707b42198e8f50dc006f1b1018', 'sha256:211b8fe11aa43cc4820756513d543e64ef1c6c759ccb97307158f66bbac02f15', '2026-11-23T20:10:23Z', '[["SKILL.md", 0, 89, "sha256:56675c0b3f94cb9b7022cf26f6d4305d7e427d707b42198e8f50dc006f1b1018"], ["run.sh", 0, 13, "sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9"]]', NULL, NULL, 'ann', 'ann-pc', NULL, NULL);
INSERT INTO revisions VALUES (3, 'd5a6bfe1ac651992', 1, 'soup', 'SKILL.md', 'sha256:7a2dbac87097d436030041da5f7700e3bbac50cdc826336c189d9e82f058f6c4', 'sha256:933c7a5ddad335c5017d934623ca0cdbd6901eca6a95c697e0ea5e864cdc87e8', '2026-11-23T20:10:23Z', '[["SKILL.md", 0, 67, "sha256:7a2dbac87097d436030041da5f7700e3bbac50cdc826336c189d9e82f058f6c4"]]', NULL, NULL, 'ann', 'ann-pc', NULL, NULL);
INSERT INTO revisions VALUES (4, 'eacd350b486e7bf0', 1, 'tents', 'SKILL.md', 'sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61', 'sha256:16a0822c9560fe3668da7f429df3384339b55d332dde1e0b47cfefe0731a5e26', '2026-11-23T20:10:23Z', '[["SKILL.md", 0, 75, "sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61"]]', NULL, NULL, 'ann', 'ann-pc', NULL, NULL);
INSERT INTO revisions VALUES (5, '74acd975721637a2', 2, 'knots', 'SKILL.md', 'sha256:a800a0b1b3dbe3aefe9fdd12ab0328fca8c828a49be84b41affea60ab8756a6c', 'sha256:042dade486f04b3bc655f5416254c042dd7238913cc6453c8694b254d0b655f4', '2026-11-23T20:10:23Z', '[["SKILL.md", 0, 99, "sha256:a800a0b1b3dbe3aefe9fdd12ab0328fca8c828a49be84b41affea60ab8756a6c"], ["run.sh", 0, 13, "sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9"]]', NULL, NULL, 'ann', 'ann-pc', NULL, NULL);
INSERT INTO revisions VALUES (6, '74acd975721637a2', 3, 'knots', 'SKILL.md', 'sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8', 'sha256:4e19fd1a039065afb17664edc22925f1ae65911bbfb2df857dead000652c6fbc', '2026-11-23T20:10:23Z', '[["SKILL.md", 0, 104, "sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8"], ["run.sh", 0, 13, "sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9"]]', NULL, NULL, 'ann', 'ann-pc', NULL, NULL);
INSERT INTO search_texts VALUES (2, '''broken'':1A ''descript'':3C ''no'':2C', '''descript'':2 ''no'':1');
INSERT INTO search_texts VALUES (5, '''pitch'':2C ''tent'':1A,3C', '''hammer'':2 ''peg'':4 ''tent'':1 ''the'':3');
INSERT INTO search_texts VALUES (7, '''and'':6C ''knot'':1A ''line'':7C ''rope'':2B,5C ''sail'':3B ''ti'':4C', '''bowlin'':4 ''first'':2 ''how'':1 ''the'':3');
INSERT INTO sketches VALUES (2, '\x000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000cb6bc8b6000000000000000000000000000000000000000000000000000000001f28aa67');
INSERT INTO sketches VALUES (5, '\x00000000000000000000000000000000000000003c23236629c229a400000000000000000000000000000000000000000000000000000000d96a7cec00000000000000000000000000000000000000000f716620');
INSERT INTO sketches VALUES (7, '\x000000009804b18a00000000000000005f492f8e0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000d37402a31ca799536d9bf50700000000bfd5f717');
INSERT INTO skill_files VALUES (2, 'SKILL.md', 33188, 38, 1795464622132146192, 1795464622132146192, 2188785, 'sha256:cb84210f9653c71cd58e10c56864048aac07e2d71ac463700afea3d8df702996');
INSERT INTO skill_files VALUES (7, 'SKILL.md', 33188, 104, 1795464623435124220, 1795464623439124220, 2228467, 'sha256:87d80d72bc1106e9c0769df72ec9bbbf8692b802383a8c81134502299dadcbd8');
INSERT INTO skill_files VALUES (7, 'run.sh', 33188, 13, 1795464622131830692, 1795464622131830692, 2172395, 'sha256:93d310dddd1c5ffa8169a09dcd6c76051ff5ac7b0bcb5f4a447ed43b42fe00f9');
INSERT INTO skill_files VALUES (5, 'SKILL.md', 33188, 75, 1700000000000000000, 1795464622132026724, 2180309, 'sha256:3e7779b8046b27cd6c40c93357cfa245aa5735dec04fa51878fe0d116670fa61');
INSERT INTO skill_tags VALUES ('rope', 7);
INSERT INTO skill_tags VALUES ('sailing', 7);
INSERT INTO usage VALUES ('74acd975721637a2', 0, 0, 2, NULL, NULL, '2026-11-23T20:10:23Z');
INSERT INTO usage_days VALUES ('2026-11-23', '74acd975721637a2', 0, 0, 2);
SELECT setval('audit_id_seq', 1, true);
SELECT setval('changes_id_seq', 3, true);
SELECT setval('diagnostics_id_seq', 4, true);
SELECT setval('revisions_id_seq', 6, true);
SELECT setval('skills_id_seq', 8, true);
SELECT setval('sources_id_seq', 1, true);
