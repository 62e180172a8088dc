"""Changes that stay after the skill has run, and protections that the skill switches off."""

import re
from typing import Final

from registry.document.behaviours.table import anywhere, in_prose

# Lines that harmless skills add to a shell profile: variables, paths, completions.
_COMMANDS: Final = (
    r"(?:curl|wget|nohup|base64|eval|\bnc\b|python3?|/tmp/|/dev/|\(|&[ ]?['\"]|\bsh\b|bash -"
    r"|osascript|node )"
)
_PROFILE: Final = r"\.(?:bashrc|zshrc|bash_profile|profile|zprofile|zshenv|bash_login)\b"
_MEMORY: Final = (
    r"(?:claude\.md|agents\.md|soul\.md|memory\.md|gemini\.md|identity\.md|user\.md|heartbeat\.md"
    r"|tools\.md|\.cursorrules|\.windsurfrules|copilot-instructions\.md)"
)

BEHAVIOURS: Final = (
    anywhere(
        "protection-off",
        "lets every program become root",
        r"(?:nopasswd:[ ]?all\b[^\n]{0,80}?/etc/sudoers"
        r"|/etc/sudoers[^\n]{0,160}?nopasswd:[ ]?all\b)",
        accept=lambda match: (
            re.search(
                rb"\b(?:remove|delete|avoid|never|without|find|such as|replace)\b[^.\n]{0,60}$",
                match.string[max(0, match.start() - 80) : match.start()],
            )
            is None
        ),
    ),
    anywhere(
        "stranger-key",
        "adds a login key to this machine",
        r"(?:(?:echo|printf|cat|tee|curl|wget|add|append|write)[^\n]{0,400}(?:>>?|tee|-a|to"
        r"|into|-o)[ ]?[^\n]{0,40}authorized_keys"
        r"|(?:open|writefilesync|appendfilesync|appendfile|writefile"
        r"|write_text)\([^\n]{0,80}authorized_keys|authorized_keys[^\n]{0,60}(?:\.write"
        r"|['\"]a['\"]|'a'|>>))",
        accept=lambda match: (
            re.search(rb"aaaa\.\.\.|\.pub\b|<|your|\$", match[0].split(b"authorized_keys")[0])
            is None
        ),
    ),
    anywhere(
        "persistence",
        "adds a scheduled job",
        r"(?:\|[ ]?crontab[ ](?:-u[ ]\S{1,20}[ ])?-|crontab[ ](?:/tmp|<<|-[ ]?<)|(?:>>?"
        r"|tee)[ ][^\n]{0,20}/etc/cron[^\s]{0,20}|(?:>>?|tee|-a)[ ]?/var/spool/cron)",
    ),
    anywhere(
        "persistence",
        "runs at every login",
        r"(?:echo|printf)[ ][^\n]{0,40}?",
        _COMMANDS,
        r"[^\n]{0,200}>>[ ]?[^\n]{0,40}",
        _PROFILE,
        accept=lambda match: (
            re.search(
                rb"(?:export |path=|completion|--init|init -|hook (?:zsh|bash)|brew shellenv"
                rb"|init (?:zsh|bash))",
                match[0],
            )
            is None
        ),
    ),
    anywhere(
        "persistence",
        "runs at every login",
        r"(?:(?:open|appendfilesync|appendfile|writefilesync)\([^\n]{0,100}",
        _PROFILE,
        r"[\s\S]{0,200}(?:curl|wget|nohup|base64|python|/tmp/)|\b(?:add"
        r"|append)\b[^\n]{0,120}(?:curl|wget|nohup|base64)[^\n]{0,160}",
        _PROFILE,
        r")",
    ),
    anywhere(
        "persistence",
        "runs at every login",
        r"(?:(?:cp|mv|cat|tee|echo|printf|ln)[ ][^\n]{0,160}library/launch(?:agents|daemons)/"
        r"|(?:>|tee)[ ]?[^\n]{0,40}launch(?:agents|daemons)/"
        r"|(?:>|tee|cp[ ][^\n]{0,60})[ ]?[^\n]{0,40}(?:\.config/autostart|/etc/rc\.local"
        r"|/etc/profile\.d|/etc/init\.d)"
        r"|schtasks(?:\.exe)?[ ]/create[^\n]{0,160}(?:/tr|onlogon)|currentversion\\{1,2}run\b"
        r"|start menu\\{1,2}programs\\{1,2}startup)",
    ),
    anywhere(
        "persistence",
        "runs at every start",
        r"execstart=[^\n]{0,60}(?:curl|wget|/tmp/|/dev/shm|base64|\bnc\b|bash -c)",
    ),
    anywhere(
        "persistence",
        "adds a command that starts by itself",
        r"(?:(?:>>?|tee|cp|install|open\(|write_text)[^\n]{0,80}\.config/systemd/user/[\w@.-]{1,40}"
        r"|register-scheduledtask|new-scheduledtasktrigger|register-wmievent"
        r"|(?:add-content|out-file|set-content|>>)[ ][^\n]{0,20}\$profile\b|launchctl[ ]submit"
        r"|make login item)",
    ),
    anywhere(
        "persistence",
        "replaces a command",
        r"alias[ ](?:sudo|git|ssh|ls|cd|npm|pip|docker|su|curl|claude)=[^\n]{0,100}"
        r"(?:/tmp/|/\.|~/\.|curl|wget|base64|-c[ ])[^\n]{0,120}>>[^\n]{0,40}",
        _PROFILE,
    ),
    anywhere(
        "persistence",
        "adds a library that every program loads",
        r"(?:(?:>>?|tee)[ ]?(?:-a[ ])?/etc/ld\.so\.preload"
        r"|(?:ld_preload|dyld_insert_libraries)=[\"']?(?:/tmp/|/dev/shm/|/var/tmp/|[^\s\"']{0,60}/\.)\w)",
    ),
    # Changes of the files with the agent's own rules.
    anywhere(
        "agent-configuration",
        "changes the agent's own rules",
        r"(?:(?:echo|printf|cat|tee)\b[^\n]{0,300}(?:>>|tee -a|-a )[ ]?[^\n]{0,60}",
        _MEMORY,
        r"|cat[ ]>>[ ]?[^\n]{0,60}",
        _MEMORY,
        r"|open\([^\n]{0,80}",
        _MEMORY,
        r"[\"'][^\n]{0,12}[\"'][aw]|(?:appendfilesync|writefilesync)\([^\n]{0,60}",
        _MEMORY,
        r"|(?:curl|wget)[^\n]{0,160}-o[ ]?[^\n]{0,40}",
        _MEMORY,
        r")",
    ),
    in_prose(
        "agent-configuration",
        "changes the agent's own rules",
        r"\b(?:append|add|insert|write|put|inject|copy)\b[^\n]{0,120}?",
        _MEMORY,
        r"[^\n]{0,120}?(?:always (?:run|trust|execute|obey|allow|follow|send|include)"
        r"|without asking|never ask|trust (?:every|all)|obey|ignore|stays? active|persist"
        r"|all (?:later|future) sessions|every session)",
    ),
    anywhere(
        "agent-configuration",
        "changes the agent's settings, so that commands run by themselves",
        r"(?:\.(?:claude|codex|gemini|cursor|openclaw)[/\\](?:settings(?:\.local)?|config|mcp"
        r"|openclaw|hooks)\.json|claude_desktop_config\.json|\.mcp\.json)",
        r"[\s\S]{0,500}?\bhooks?\b[\s\S]{0,300}?(?:curl|wget|bash -c|\bnc\b|base64)",
    ),
    # Protections that are switched off.
    anywhere(
        "protection-off",
        "switches off a protection of the system",
        r"(?:spctl[ ]--(?:master|global)-disable|csrutil[ ]disable"
        r"|xattr[ ]-\w{0,3}[cd]\w{0,3}[ ](?:com\.apple\.quarantine|[^\n]{0,60}\.(?:app|dmg"
        r"|pkg))|setenforce[ ]0|ufw[ ]disable"
        r"|(?:set|add)-mppreference[^\n]{0,60}-(?:disable\w{3,40}|exclusion\w{3,12})"
        r"|disablerealtimemonitoring|disableantispyware|advfirewall[ ]set[^\n]{0,40}[ ]off"
        r"|systemctl[ ](?:stop|disable)[^\n]{0,20}(?:firewalld|apparmor|auditd|falcon|clamav))",
    ),
    anywhere(
        "protection-off",
        "switches off a protection of the agent",
        r"(?:--dangerously-(?:skip-permissions|bypass-approvals-and-sandbox)"
        r"|(?:permission-mode[ =]|defaultmode[\"' :=]{1,5})bypasspermissions\b|--yolo\b"
        r"|--no-sandbox[ ](?:claude|codex)|approval[_-]policy[ =\"']{1,4}never"
        r"|sandbox_mode[ =\"']{1,4}danger"
        r"|\b(?:turn on|enable|set|switch on"
        r"|activate)\b[^.\n]{0,30}\bauto-?approv\w{1,4}\b[^.\n]{0,30}\b(?:all|every"
        r"|everything|any)\b"
        r"|\b(?:disable|turn off|switch off|switch"
        r"|turn)\b[ ][^.\n]{0,20}\b(?:the )?(?:sandbox|permission (?:prompts|checks)"
        r"|confirmations?|approval prompts|safety checks|antivirus|windows defender|defender"
        r"|firewall)\b)",
        accept=lambda match: (
            re.search(
                rb"(?:never|not|don't|avoid|cannot|without)[ ][^.\n]{0,40}$",
                match.string[max(0, match.start() - 60) : match.start()],
            )
            is None
        ),
    ),
)
