"""Commands that start by themselves.

The commands start during an installation, when a folder is opened, on a commit, or when the agent
runs.
"""

import re
from typing import Final

from registry.document.behaviours.table import LOCAL, anywhere, in_prose

_FETCHES: Final = (
    r"(?:\bcurl\b|\bwget\b|\biwr\b|\birm\b|invoke-(?:webrequest|restmethod|expression)|\bfetch\("
    r"|https?\.get\(|urlopen|urlretrieve|requests\.get|downloadstring|base64|\beval\b|/dev/tcp/"
    r"|\bnc[ ]|\bncat[ ]|powershell|\bmshta\b)"
)
# Data that a command sends: a file, standard input, or the output of another command.
_SENDS: Final = (
    r"(?:\|[ ]?(?:curl|nc|ncat|wget)\b"
    r"|(?:\b|\\n)(?:curl|wget)\b[^\n]{0,160}?[ ](?:-\w{0,3}[dft]|--data(?:-\w{1,9})?|--form"
    r"|--upload-file|--post-file)[ =]?[\\\"']{0,2}(?:[\w-]{1,20}=)?(?:@|-(?=[\s\\\"'])|\$\(|`)"
    r"|\b(?:scp|rsync)[ ][^\n]{0,80}[\w.-]{3,60}:)"
)
_HOOK: Final = (
    r"(?:\.git/hooks/|core\.hookspath|\.githooks/|\.husky/|init\.templatedir"
    r"|\bhooks/(?:pre|post|commit|prepare)-\w{3,12})"
)
_EVENT: Final = (
    r"[\"'](?:pretooluse|posttooluse|sessionstart|sessionend|userpromptsubmit|notification|stop"
    r"|subagentstop|precompact)[\"']"
)

_STARTED: Final = re.compile(
    rb"(?:\bcurl\b|\bwget\b|https?://(?!localhost|127\.)|base64|\beval\b|\biex\b|powershell|/tmp/"
    rb"|\bnc[ ]|python3?[ ]-c|node[ ]-e|/dev/tcp|[~.]/\.\w)"
)

BEHAVIOURS: Final = (
    # Install scripts of npm packages.
    anywhere(
        "auto-run",
        "runs by itself when the package is installed",
        r"\"(?:(?:pre|post)?install|prepare|prepublish(?:only)?|prepack|postpack)\"[ \t]{0,4}:"
        r"[ \t]{0,4}\"(?:[^\"\n\\]|\\.){0,300}?",
        rf"(?:{_FETCHES}|https?://(?!{LOCAL}))",
        accept=lambda match: (
            (b'install"' in match[0][:14] and match[0][1:2] != b"i")
            or b'"scripts"' in match.string[max(0, match.start() - 600) : match.start()]
        ),
    ),
    in_prose(
        "auto-run",
        "runs by itself when the package is installed",
        r"\b(?:add|put|set|insert|write|create|append)\b[^.\n]{0,60}(?:pre|post)install\b"
        rf"[^\n]{{0,160}}?{_FETCHES}",
    ),
    # Python's setup files, and modules that Python loads whenever it starts.
    anywhere(
        "auto-run",
        "runs by itself when the package is installed",
        r"(?:(?:import|from)[ ](?:setuptools|distutils)|cmdclass)[\s\S]{0,1000}?"
        r"(?:os\.system|os\.popen|popen|check_output|check_call|subprocess\.\w{3,12})\("
        rf"[^\n]{{0,160}}?{_FETCHES}",
    ),
    anywhere(
        "auto-run",
        "runs at every start of Python",
        r"(?:usercustomize|sitecustomize|site-packages/[\w.-]{1,40}\.pth\b)"
        r"[\s\S]{0,300}?(?:\bexec\(|\beval\(|urlopen|os\.system|subprocess|base64|\bcurl\b)",
    ),
    # Start-up tasks of editors and containers.
    anywhere(
        "auto-run",
        "runs as soon as the folder is opened",
        r"runon[\"']?[ \t]{0,3}:[ \t]{0,3}[\"']?folderopen",
        accept=lambda match: (
            _STARTED.search(match.string[max(0, match.start() - 700) : match.end() + 500])
            is not None
        ),
    ),
    anywhere(
        "auto-run",
        "runs when the container is created",
        r"(?:postcreate|poststart|postattach|oncreate|initialize|updatecontent)command[\"']?"
        r"[ \t]{0,3}:[^\n]{0,300}?(?:urlopen|base64|\beval\b|/dev/tcp/|https?\.get\(|\bnc[ ]"
        r"|requests\.get|\bhttp://(?!localhost)|\b(?:curl|wget)\b[^\n]{0,200}\|)",
    ),
    # Scheduled tasks.
    anywhere(
        "auto-run",
        "downloads and runs code at regular times",
        r"(?:(?:@(?:reboot|hourly|daily)|(?:[\d*/,-]{1,6}[ ]){5})[^\n]{0,80}?(?:\bcurl\b"
        r"|\bwget\b|base64)"
        r"[^\n]{0,160}?\|[ ]?(?:ba|z)?sh\b[^\n]{0,80}?(?:crontab|/etc/cron)"
        r"|(?:crontab|/etc/cron)[^\n]{0,120}?(?:@(?:reboot|hourly|daily)"
        r"|(?:[\d*/,-]{1,6}[ ]){5})[^\n]{0,80}?"
        r"(?:\bcurl\b|\bwget\b|base64)[^\n]{0,160}?\|[ ]?(?:ba|z)?sh\b)",
    ),
    # Git's hooks.
    anywhere(
        "auto-run",
        "is a git hook that sends data or runs code",
        rf"(?:{_HOOK}[\s\S]{{0,500}}?(?:{_SENDS}|\|[ ]?(?:ba|z)?sh\b)"
        rf"|{_SENDS}[^\n]{{0,160}}>[ ]?[^\n]{{0,40}}{_HOOK})",
        accept=lambda match: b"localhost" not in match[0] and b"127.0.0.1" not in match[0],
    ),
    anywhere(
        "auto-run",
        "is a git hook",
        r"(?:core\.(?:fsmonitor|pager|sshcommand|editor)|diff\.external"
        r"|alias\.[\w-]{1,20})[ =]{1,3}[\"'\\]{0,2}!?[^\n]{0,120}?(?:\bcurl\b|\bwget\b|/tmp/"
        r"|\bnc[ ]|base64|/dev/tcp|~/\.cache|\beval\b)",
    ),
    # Hooks and servers of the agent.
    anywhere(
        "auto-run",
        "makes the agent run a command by itself",
        _EVENT,
        r"[\s\S]{0,300}?[\"']command[\"'][ \t]{0,3}:[ \t]{0,3}[\"'](?:[^\n]){0,200}?",
        rf"(?:{_SENDS}|\|[ ]?(?:ba|z)?sh\b|base64|/dev/tcp/|\beval\b"
        r"|(?:sh|bash)[ ][~/$\w]{0,12}/?\.(?!claude|cursor|github|/)\w)",
        accept=lambda match: b"localhost" not in match[0] and b"127.0.0.1" not in match[0],
    ),
    in_prose(
        "auto-run",
        "makes the agent run a command by itself",
        r"\b(?:sessionstart|sessionend|pretooluse|posttooluse|userpromptsubmit|stop)\b[`\"' ]"
        r"[^\n]{0,20}hook\b[^\n]{0,80}?\b(?:runs?|calls?|executes?|that|to)\b[^\n]{0,60}?",
        r"(?:\bcurl\b|\bwget\b|base64|https?://(?!localhost))",
        accept=lambda match: b"localhost" not in match[0] and b"127.0.0.1" not in match[0],
    ),
    anywhere(
        "auto-run",
        "is an MCP server that downloads its code",
        r"mcp_?servers?\b[\s\S]{0,400}?[\"']?(?:command|args)[\"']?[ \t]{0,3}[:=][^\n]{0,160}?",
        r"(?:\bcurl\b|\bwget\b|base64|\beval\b)",
    ),
)
