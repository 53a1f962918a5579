"""What Quire is deployed with: the image, compose.yaml and the unit of systemd.

Where a Docker engine runs, the image is built and run. Everywhere, the steps of the Dockerfile are carried
out in a folder, and its commands run as its user, who may write only what the image lets its user write.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from quire.library import Library
from tests import postgres

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "quire.service"
COMPOSE = ROOT / "compose.yaml"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
TEXT = "# Lamp\n\nTo undo a release, type `lamp use 41`.\n"
Step = tuple[str, str]


def steps() -> list[list[Step]]:
    """The instructions of the Dockerfile, by stage."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    found = [(name, rest) for name, _, rest in (line.partition(" ") for line in lines if line)]
    starts = [at for at, (name, _) in enumerate(found) if name == "FROM"]
    return [found[at:end] for at, end in zip(starts, [*starts[1:], None], strict=True)]


def last(name: str) -> str:
    """The last instruction of a name in the last stage."""
    return [rest for step, rest in steps()[-1] if step == name][-1]


def health_command() -> list[str]:
    told = last("HEALTHCHECK")
    return list(json.loads(told[told.index("[") :]))


def first_key() -> list[str]:
    """The command that compose.yaml tells people to make their first key with, inside the container."""
    (found,) = re.findall(r"docker compose exec quire (quire keys make .*)", COMPOSE.read_text("utf-8"))
    return shlex.split(found)


# ------------------------------------------------------------------- the image, without an engine


@dataclass(frozen=True, slots=True)
class Image:
    """What the Dockerfile makes, in a folder."""

    folder: Path
    env: dict[str, str]
    user: dict[str, Any]  # as whom subprocess runs its commands
    port: int

    def run(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, **self.given(), capture_output=True, text=True, check=False)

    def given(self) -> dict[str, Any]:
        return {"env": self.env, "cwd": self.folder / "data", **self.user}

    def ports(self, command: list[str]) -> list[str]:
        """A command, with a free port instead of the usual one."""
        return [part.replace("8900", str(self.port)) for part in command]


def user_of_image() -> dict[str, Any]:
    """The user of the image, where the tests may become another user; else whoever runs them."""
    user, group = map(int, last("USER").split(":"))
    assert user != 0
    return {} if os.getuid() else {"user": user, "group": group, "extra_groups": []}


def python_for(user: dict[str, Any]) -> str:
    """A Python of this version that a user may run."""
    own: str = sys._base_executable  # type: ignore[attr-defined]
    places = [own, f"/usr/local/bin/python{VERSION}", f"/usr/bin/python{VERSION}"]
    for place in filter(os.path.exists, places):
        try:
            subprocess.run([place, "-c", "import venv"], **user, cwd="/", capture_output=True, check=True)
            return place
        except (OSError, subprocess.CalledProcessError):
            continue
    pytest.skip(f"There is no Python {VERSION} that another user may run.")


def site_packages() -> Path:
    return Path(yaml.__file__).parents[1]


def build(folder: Path, python: str) -> None:
    """Carry out the first stage, with the packages of this environment instead of downloaded ones."""
    tools, here = folder / "tools", folder
    tools.mkdir()
    for found in site_packages().glob("*"):
        if re.match(r"pip$|setuptools\b|_distutils_hack$", found.name):
            (tools / found.name).symlink_to(found)
    for name, rest in steps()[0]:
        if name == "WORKDIR":
            here = folder / rest.lstrip("/")
            here.mkdir(parents=True)
        elif name == "COPY":
            copy(rest.split(), here)
        elif name == "RUN":
            command = rest.replace("/opt/quire", str(folder / "opt/quire"))
            command = command.replace("python -m venv", f"{python} -m venv --without-pip")
            command = command.replace("pip install", "pip install --no-deps --no-build-isolation")
            env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(tools)}
            done = subprocess.run(command, shell=True, cwd=here, env=env, capture_output=True, check=False)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
    own = folder / f"opt/quire/lib/python{VERSION}/site-packages"
    (own / "reused.pth").write_text(f"{site_packages()}\n")


def copy(names: list[str], here: Path) -> None:
    *sources, target = names
    for name in sources:
        if (ROOT / name).is_dir():
            unwanted = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, here / target, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, here / target)


def environment(folder: Path) -> dict[str, str]:
    """The variables of the last stage, with the paths of the folder."""
    found = {"PATH": os.defpath, "TMPDIR": str(folder / "tmp")}
    for told in shlex.split(last("ENV")):
        name, _, value = told.partition("=")
        value = value.replace("$PATH", found["PATH"])
        found[name] = re.sub(r"(?<!\w)/(opt/quire|data)\b", rf"{folder}/\1", value)
    return found


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    user = user_of_image()
    python = python_for(user)
    with tempfile.TemporaryDirectory(prefix="quire-") as name, socket.create_server(("127.0.0.1", 0)) as free:
        folder, port = Path(name), free.getsockname()[1]
        free.close()
        folder.chmod(0o755)
        build(folder, python)
        for place in ("data", "tmp"):
            (folder / place).mkdir(mode=0o700)
            if user:
                os.chown(folder / place, user["user"], user["group"])
        if not user:
            folder.chmod(0o555)
        yield Image(folder, environment(folder), user, port)
        folder.chmod(0o755)


@contextmanager
def served(image: Image) -> Iterator[subprocess.Popen[str]]:
    """The command of the image, running."""
    command = [*json.loads(last("CMD")), "--port", str(image.port)]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **image.given(), **pipes) as process:
        assert process.stderr
        told: list[str] = []
        while not any("Serving on" in line for line in told):
            told.append(process.stderr.readline())
            assert told[-1], told
        try:
            yield process
        finally:
            process.kill()


def answer(port: int, path: str, key: str = "", body: Any = None) -> tuple[int, Any]:
    """The status and the JSON of an answer."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    data = json.dumps(body).encode() if body else None
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, headers)
    try:
        with urllib.request.urlopen(asked, timeout=30) as got:
            return got.status, json.load(got)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def use(port: int, key: str) -> None:
    """Add a text and find it. Nothing is told without a key."""
    assert answer(port, "/api/status")[0] == 401
    assert answer(port, "/health") == (200, {"healthy": True})
    status, report = answer(port, "/api/add", key, {"content": TEXT, "path": "lamp.md", "collection": "lamp"})
    assert (status, report["added"]) == (200, 1)
    status, found = answer(port, "/api/search?q=undo+a+release", key)
    assert status == 200
    assert found["results"][0]["address"].startswith("lamp:lamp.md")


def test_the_image_serves_with_nothing_but_its_data_writable(image: Image) -> None:
    """Requirement: an image that runs without root and with a read-only root file system."""
    assert image.run(image.ports(health_command())).returncode == 1
    with served(image) as process:
        checked = image.run(image.ports(health_command()))
        assert checked.returncode == 0, checked.stderr
        made = image.run(first_key())
        assert made.returncode == 0, made.stderr
        use(image.port, made.stdout.strip())
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert process.returncode in (0, -signal.SIGTERM)
    assert "Traceback" not in err
    logged = [json.loads(line) for line in out.splitlines()]
    assert [line["status"] for line in logged if line["path"] == "/api/search"] == [200]
    assert "undo" not in out
    if image.user:
        assert set(written(image)) == {"data", "tmp"}
    assert {"library.db"} <= {one.name for one in (image.folder / "data").iterdir()}


def written(image: Image) -> Iterator[str]:
    """The folders in which something belongs to the user of the image, or that it may write to."""
    for place, folders, files in os.walk(image.folder):
        for path in (Path(place), *(Path(place) / name for name in (*folders, *files))):
            about = path.lstat()
            is_open = about.st_mode & stat.S_IWOTH and not path.is_symlink()
            if about.st_uid == image.user["user"] or is_open:
                yield path.relative_to(image.folder).parts[0]


def test_the_image_has_its_library_and_caches_in_one_volume() -> None:
    """Requirement: only /data is written; the health check asks the port that the server listens on."""
    told = dict(one.split("=", 1) for one in shlex.split(last("ENV")))
    places = [told["HOME"], told["QUIRE_LIBRARY"], *(told[name] for name in told if name.startswith("XDG_"))]
    assert all(place.startswith("/data") for place in places)
    assert {name for name in told if name.startswith("XDG_")} == {
        f"XDG_{name}_HOME" for name in ("CONFIG", "DATA", "CACHE")
    }
    assert last("VOLUME") == last("WORKDIR") == "/data"
    assert f":{last('EXPOSE')}/health" in health_command()[-1]
    assert "curl" not in (ROOT / "Dockerfile").read_text("utf-8")


def test_the_builder_gets_all_that_is_copied() -> None:
    """.dockerignore lets through exactly what the Dockerfile copies."""
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    copied = [rest.split()[:-1] for name, rest in steps()[0] if name == "COPY"]
    assert let_through == {name for names in copied for name in names}


# ---------------------------------------------------------------------------- the image, for real


def has_engine() -> bool:
    docker = shutil.which("docker")
    return (
        bool(docker)
        and subprocess.run([str(docker), "info"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.timeout(1800)
@pytest.mark.skipif(not has_engine(), reason="no Docker engine runs here")
def test_docker_builds_and_runs_the_image() -> None:
    """Requirement: the image itself, with a read-only root file system and without capabilities."""
    name = f"quire-test-{os.getpid()}"
    subprocess.run(["docker", "build", "--tag", name, str(ROOT)], check=True)
    limits = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    ports = ["--publish", "127.0.0.1:0:8900"]
    try:
        subprocess.run(["docker", "run", "--detach", "--name", name, *limits, *ports, name], check=True)
        shown = docker("port", name, "8900")
        wait_until_healthy(name)
        use(int(shown.rpartition(":")[2]), docker("exec", name, *first_key()))
        docker("stop", name)
        assert docker("inspect", "--format", "{{.State.ExitCode}}", name) in ("0", "143")
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", name], check=False)
        subprocess.run(["docker", "image", "rm", name], check=False)


def docker(*args: str) -> str:
    done = subprocess.run(["docker", *args], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def wait_until_healthy(name: str) -> None:
    """Run the health check of the image until it succeeds."""
    for _ in range(100):
        if subprocess.run(["docker", "exec", name, *health_command()], check=False).returncode == 0:
            return
        time.sleep(0.2)
    raise AssertionError(docker("logs", name))


# -------------------------------------------------------------------------------- compose.yaml


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(COMPOSE.read_text("utf-8"))["services"]
    return found


@pytest.mark.parametrize("name", ["quire", "db"])
def test_a_service_of_compose_can_do_little(name: str) -> None:
    """Requirement: read-only, without capabilities and new privileges, within limits."""
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["mem_limit"]
    assert service["pids_limit"]
    assert any(one.startswith("/tmp:") for one in service["tmpfs"])
    assert not service.get("privileged")


def test_compose_asks_for_passwords_and_has_none() -> None:
    """Requirement: secrets come from the environment, and one that is not set is a clear error."""
    told = {**services()["db"]["environment"], **services()["quire"]["environment"]}
    secrets = {name: value for name, value in told.items() if "PASSWORD" in name}
    assert len(secrets) == 3
    assert all(re.fullmatch(r"\$\{\w+:\?Set \w+ in \.env, .+\}", value) for value in secrets.values())
    assert "@db/" in told["QUIRE_LIBRARY"]
    assert ":" not in told["QUIRE_LIBRARY"].partition("://")[2]


def test_only_quire_reaches_the_database_of_compose() -> None:
    """Requirement: the database publishes no port; the server only one on this machine."""
    found = services()
    assert "ports" not in found["db"]
    assert all(port.startswith("127.0.0.1:") for port in found["quire"]["ports"])
    assert found["quire"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    networks = yaml.safe_load(COMPOSE.read_text("utf-8"))["networks"]
    assert networks["database"] == {"internal": True}
    assert found["db"]["networks"] == ["database"]


@postgres.needs_postgres
def test_the_role_of_compose_is_bound_by_policies() -> None:
    """Requirement: Quire owns its database but is no superuser, whom policies do not bind."""
    server = postgres.server()
    postgres.execute(server.get_uri(), "CREATE DATABASE composed")
    psql = next(Path(server.bin_path).glob("psql")) if hasattr(server, "bin_path") else None
    env = {"PATH": f"{psql.parent if psql else ''}:{os.environ['PATH']}", "PGHOST": str(server.pgdata)}
    env |= {"POSTGRES_DB": "composed", "QUIRE_DB_PASSWORD": 'it\'s a "secret"'}
    try:
        done = subprocess.run(
            ["sh", ROOT / "deploy" / "database.sh"], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        url = postgres.as_role(server.get_uri(database="composed"), "quire")
        asked = "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        assert postgres.execute(url, asked) == [(False, False)]
        with Library.open(url, create=True) as library:
            library.add(content=TEXT, path="lamp.md", collection="lamp")
            assert library.search("undo a release").results
    finally:
        postgres.drop(server.get_uri(database="composed"))
        postgres.execute(server.get_uri(), "DROP ROLE IF EXISTS quire")


# ------------------------------------------------------------------------------ the unit of systemd


class _Lines(dict[str, Any]):
    """Settings of a unit; one that is given several times has all its values."""

    def __setitem__(self, key: str, value: Any) -> None:
        before = self.get(key)
        is_more = isinstance(value, list) and isinstance(before, list)
        super().__setitem__(key, [*before, *value] if is_more else value)  # type: ignore[misc]


def unit() -> configparser.RawConfigParser:
    found = configparser.RawConfigParser(strict=False, dict_type=_Lines, comment_prefixes=("#",))
    found.optionxform = str  # type: ignore[assignment,method-assign]
    found.read_string(UNIT.read_text("utf-8"))
    return found


def test_the_unit_can_do_little() -> None:
    """Requirement: its own user, one folder to write to, limits, and a restart when it fails."""
    service = unit()["Service"]
    wanted = {
        "User": "quire",
        "StateDirectory": "quire",
        "ProtectSystem": "strict",
        "NoNewPrivileges": "yes",
        "PrivateTmp": "yes",
        "CapabilityBoundingSet": "",
        "Restart": "on-failure",
        "EnvironmentFile": "-/etc/quire/environment",
    }
    assert {name: service[name] for name in wanted} == wanted
    assert service["MemoryMax"]
    assert service["TasksMax"]
    assert "ReadWritePaths" not in service


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """Requirement: the unit is valid, and systemd rates what it can reach as little."""
    place = tmp_path / "quire.service"
    quire = str(Path(sys.executable).parent / "quire")
    place.write_text(UNIT.read_text("utf-8").replace("/opt/quire/bin/quire", quire))
    checked = subprocess.run(
        ["systemd-analyze", "verify", place], capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=20", "--no-pager", place],
        capture_output=True,
        text=True,
        check=False,
    )
    assert rated.returncode == 0, rated.stdout[-200:] + rated.stderr
