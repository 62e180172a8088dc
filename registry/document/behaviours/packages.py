"""Packages from unknown authors, and proxies between the user and a service."""

import re
from typing import Final

from registry.document.behaviours.names import look_alike
from registry.document.behaviours.table import ADDRESS, LOCAL, anywhere

BEHAVIOURS: Final = (
    anywhere(
        "package-look-alike",
        "installs a package whose name imitates a well-known one",
        r"(?:pip3?|npm|pnpm|yarn|uv|bun|pipx)[ ](?:pip[ ])?(?:install|i"
        r"|add)[ ](?P<names>[^\n;&|`#]{2,200})",
        accept=lambda match: look_alike(match["names"].decode("ascii")) is not None,
    ),
    anywhere(
        "package-from-address",
        "installs a package from an unknown address",
        rf"(?:pip3?|npm|pnpm|yarn|uv|pipx|gem|npx|bun)[ ](?:pip[ ])?(?:install|i"
        rf"|add)[ ][^\n;&|]{{0,120}}?(?:git\+)?(?:http://(?!{LOCAL})|https?://{ADDRESS})",
    ),
    anywhere(
        "package-from-address",
        "installs a package from an unknown address",
        r"(?:(?:(?:pip3?|npm|pnpm|yarn|uv|pipx|bun)[ ](?:pip[ ]|tool[ ])?(?:install|i|add)"
        r"|cargo[ ]install|gem[ ]install)[ ](?:[^\n;&|`]{0,80}[ ])?"
        r"|(?:npx|uvx|bunx)[ ](?:-\w{1,3}[ ]"
        r"|--[\w-]{2,20}[ ]){0,4})[\"']?(?:[\w.-]{1,40}[ ]?@[ ]?)?"
        r"(?:git\+)?https?://(?!(?:[\w.-]{1,60}@)?(?:[\w-]{1,40}\.){0,3}(?:github\.com|githubusercontent\.com"
        r"|gitlab\.com|bitbucket\.org|codeberg\.org|pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)"
        r"|yarnpkg\.com|pytorch\.org|huggingface\.co|esm\.sh|jsr\.io|crates\.io|rubygems\.org"
        r"|googleapis\.com|googlesource\.com|amazonaws\.com|azureedge\.net|nvidia\.com|apache\.org"
        r"|npmmirror\.com|tsinghua\.edu\.cn|aliyun\.com|pkg\.pr\.new|python\.org|anaconda\.org"
        rf"|your|my-|{LOCAL}))(?P<address>[\w.-]{{3,100}}/[^\s\"'`]{{1,160}})",
        accept=lambda match: (
            re.search(
                rb"index-url|registry|find-links|--source|proxy|--index\b|-f[ ]|mirror", match[0]
            )
            is None
        ),
    ),
    anywhere(
        "package-from-address",
        "installs a package from an unknown address",
        r"(?:^|\n)[ ]{0,4}[a-z][\w.\[\]-]{1,40}[ ]?@[ ]?https?://(?!(?:[\w-]{1,40}\.){0,3}(?:github\.com"
        r"|gitlab\.com|pythonhosted\.org|pytorch\.org|huggingface\.co|githubusercontent\.com))"
        r"[\w.-]{3,100}/[^\s]{1,160}?\.(?:whl|tar\.gz|zip|tgz)\b",
    ),
    # Packages and requests that go to another server than the usual one.
    anywhere(
        "redirected-endpoint",
        "redirects package downloads to another server",
        r"(?:^|\n)[ ]{0,3}(?:registry|(?:extra-)?index-url)[ ]?=[ ]?[\"']?"
        r"https?://(?!(?:[\w-]{1,40}\.){0,3}(?:pypi\.org|npmjs\.(?:org|com)|yarnpkg\.com|npmmirror\.com"
        r"|pytorch\.org|nvidia\.com|github\.com|pkg\.dev|amazonaws\.com|azure\.com|tsinghua\.edu\.cn"
        rf"|aliyun\.com|jsr\.io|fury\.io)|your|my-|mirrors?\.|{LOCAL})[\w.-]{{3,100}}",
    ),
    anywhere(
        "redirected-endpoint",
        "redirects package downloads to another server",
        r"(?:(?:--(?:extra-)?index-url|--trusted-host|global\.index-url"
        r"|global\.extra-index-url|pip_(?:extra_)?index_url|uv_index_url)[ =\"']{1,4}"
        r"|(?:npm|yarn|pnpm)[ ]config[ ]set[ ](?:\S{0,40}:)?registry[ =\"']{1,3}"
        r"|--registry[ =]|npm_config_registry[ =\"']{1,3}"
        r"|goproxy[ ]?=[ ]?)",
        r"(?!https://(?:pypi\.org|test\.pypi\.org|download\.pytorch\.org|registry\.npmjs\.org"
        r"|registry\.yarnpkg\.com|registry\.npmmirror\.com|pypi\.tuna|mirrors\.aliyun"
        r"|proxy\.golang\.org|goproxy\.cn|npm\.pkg\.github\.com|pypi\.nvidia\.com|private\."
        r"|your|my-|<|[\w.-]{1,30}\.pkg\.dev|pypi\.ngc))",
        rf"(?:https?://(?!{LOCAL})[\w.-]{{3,100}}|{ADDRESS})",
        accept=lambda match: (
            re.search(
                rb"(?:tuna\.tsinghua|aliyun|ustc|douban|tencent|huaweicloud|pytorch\.org|nvidia"
                rb"|npmmirror|mirrors?\.|github\.com|ssh://git@)",
                match.string[match.start() : match.end() + 40],
            )
            is None
        ),
    ),
    anywhere(
        "redirected-endpoint",
        "redirects package downloads to another server",
        r"url\.[\"'\\]{0,2}https?://(?!(?:[\w.-]{1,40}@)?(?:github|gitlab|bitbucket"
        r"|[\w.$\{\}-]{1,80}@github)\.|x-access-token|oauth2"
        r"|\$)[\w.-]{3,100}[^\n]{0,60}insteadof",
    ),
    anywhere(
        "redirected-endpoint",
        "sends model requests to another server",
        r"(?:anthropic|openai|gemini|claude(?:_code)?)_(?:api_)?(?:base_url|base|url|host"
        r"|endpoint|api_base)[\"']?[\]`]?[ \t]{0,3}(?:[=:]|\bto\b)[ \t]{0,3}[\"'`]?",
        rf"https?://(?!{LOCAL}|(?:[\w-]{{1,40}}\.){{0,4}}(?:anthropic|openai|googleapis"
        rf"|google|openrouter|azure|amazonaws|deepseek|moonshot|minimaxi?|bigmodel|z\.ai"
        rf"|siliconflow|x\.ai|groq|together|mistral|dashscope|aliyuncs|cloudflare|volces"
        rf"|nvidia|vercel|xiaomimimo|huggingface|github)\b)",
        r"[\w.-]{3,100}",
    ),
)
