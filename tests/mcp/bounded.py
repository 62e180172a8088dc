"""A server over HTTP within bounds of its own, as a process of ``tests.program``."""

import resource
import sys

FILES = 1024


def with_few_files() -> None:
    """Let this process open 1,024 files."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))


def serve(arguments: list[str]) -> None:
    """Serve at a port within bounds: what both are is in ``arguments``."""
    from registry.api import SkillRegistry
    from registry.mcp.http import ClientLimits, serve_http
    from registry.mcp.server import ServerOptions, SkillServer
    from registry.settings import Settings

    port, bounds = arguments

    def begun() -> None:
        sys.stderr.write("Serving\n")

    with SkillRegistry.open(settings=Settings()) as registry:
        server = SkillServer(registry, ServerOptions(watch=False))
        made = eval(bounds, {"ClientLimits": ClientLimits})
        serve_http(server, "127.0.0.1", int(port), None, begun, made)
