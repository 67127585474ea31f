"""Static checks of the files that cannot be run without a container engine."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cli import worker
from cli.commands import up
from cli.main import VERBS
from patternmill.states import EXIT_REFUSED
from tests.acceptance.harness import CHECKOUT

DEPLOYMENTS = CHECKOUT / "deployments"
README = (DEPLOYMENTS / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DEPLOYMENTS / "compose.yaml").read_text("utf-8"))
    return loaded


def test_compose_services_and_volumes_are_declared(compose: dict[str, Any]) -> None:
    """Each service has an image and waits for declared services; each named volume is declared."""
    services = compose["services"]
    for name, service in services.items():
        assert "image" in service, name
        assert set(service.get("depends_on", {})) <= set(services), name
        for volume in service.get("volumes", ()):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or (DEPLOYMENTS / source).exists(), volume
    waited = {
        (other, how["condition"]) for s in services.values() for other, how in s.get("depends_on", {}).items()
    }
    assert all("healthcheck" in services[other] for other, how in waited if how == "service_healthy")


def test_every_compose_variable_is_explained(compose: dict[str, Any]) -> None:
    """Each is in env.example, and no password has a default."""
    text = (DEPLOYMENTS / "compose.yaml").read_text("utf-8")
    used = set(re.findall(r"\$\{(\w+)", text))
    example = (DEPLOYMENTS / "env.example").read_text("utf-8")
    assert used == set(re.findall(r"^(\w+)=", example, re.MULTILINE))
    assert not re.search(r"\$\{\w*(PASSWORD|KEY)\w*:-[^}]", text)


def test_image_has_what_it_copies_and_runs() -> None:
    """Every path, package and stage that compose builds exists, and the command is a verb."""
    text = (DEPLOYMENTS / "Dockerfile").read_text("utf-8")
    for sources in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE):
        for source in sources.split():
            assert (CHECKOUT / source).exists() or source == "README.md", source
    assert set(re.findall(r"^FROM \S+ AS (\w+)$", text, re.MULTILINE)) == {"base", "server", "worker"}
    assert json.loads(text.rsplit("CMD ", 1)[1])[1] in VERBS
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    packages = project["tool"]["setuptools"]["packages"]
    copied = set(re.findall(r"^COPY (\w+) \1$", text, re.MULTILINE))
    assert {name.partition(".")[0] for name in packages} <= copied


def test_kubernetes_template_has_no_unfilled_placeholder(tmp_path: Path) -> None:
    """Every placeholder has a variable; Prefect's own substitution leaves none behind with the defaults."""
    from prefect.utilities.templating import apply_values, find_placeholders

    template = json.loads((DEPLOYMENTS / "kubernetes-pool.json").read_text("utf-8"))
    variables = template["variables"]["properties"]
    named = {placeholder.name for placeholder in find_placeholders(template["job_configuration"])}
    assert named == set(variables)
    values = {name: schema["default"] for name, schema in variables.items() if "default" in schema}
    filled = apply_values(template["job_configuration"], {**values, "command": "prefect flow-run execute"})
    assert "{{" not in json.dumps({k: v for k, v in filled.items() if k != "job_watch_timeout_seconds"})
    container = filled["job_manifest"]["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "patternmill:latest"


def test_worker_unit_of_systemd_fits_the_worker() -> None:
    """Its command exists, it is started again after a failure alone, and runs have the time to drain."""
    text = (DEPLOYMENTS / "patternmill-worker.service").read_text("utf-8")
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text)
    service = unit["Service"]
    program, verb, *options = service["ExecStart"].split()
    assert Path(program) == Path(service["WorkingDirectory"]) / ".venv" / "bin" / "patternmill"
    options_of_up = {option for parameter in up.command.params for option in parameter.opts}
    assert verb in VERBS and set(options[:1] + options[1::2]) <= options_of_up
    assert (service["Restart"], service["RestartPreventExitStatus"]) == ("on-failure", str(EXIT_REFUSED))
    assert service["KillMode"] == "mixed" and float(service["TimeoutStopSec"]) > worker.STOP_SECONDS


@pytest.mark.parametrize("heading", ["## On a server of yours", "## Several machines"])
def test_documented_servers_have_the_addresses_of_their_ui(heading: str) -> None:
    """Without them the UI asks port 4200 of the browser's own machine, and messages have no links."""
    text = README.partition(f"\n{heading}\n")[2].partition("\n## ")[0]
    exported = dict(re.findall(r"\b([A-Z][A-Z0-9_]+)=(\S+)", "\n".join(re.findall(r"export (.*)", text))))
    ui, port = exported["PREFECT_UI_URL"], exported["PREFECT_SERVER_API_PORT"]
    assert ui.endswith(f":{port}")
    assert exported["PREFECT_SERVER_CORS_ALLOWED_ORIGINS"] == ui
    assert exported["PREFECT_API_URL"] == exported["PREFECT_SERVER_UI_API_URL"] == f"{ui}/api"
    assert exported["PREFECT_SERVER_API_AUTH_STRING"] == exported["PREFECT_API_AUTH_STRING"]


def test_documented_settings_of_prefect_exist() -> None:
    """A misspelt one would be ignored in silence. Those of the package prefect-redis are its own."""
    from prefect import settings

    exported = set(re.findall(r"(?:export |\s)(PREFECT_[A-Z0-9_]+)=", README))
    assert len(exported) > 10
    assert [name for name in exported if "REDIS" not in name and not hasattr(settings, name)] == []


def test_quoted_text_in_messages_is_no_markup() -> None:
    """Slack, and what else reads a webhook's message, would take it for a link or a mention of everybody."""
    from prefect.server.utilities.user_templates import UserTemplateEnvironment, validate_user_template

    hostile = "<!channel> !here> <http://127.0.0.1:9/x|click> <@U0>"
    resource = {"prefect.state-message": hostile, "prefect.state-name": "Failed", "patternmill.plan": hostile}
    event = {"resource": resource}
    run = SimpleNamespace(name=hostile, labels={"patternmill.catalog": hostile}, parameters={})
    deployment = SimpleNamespace(name=hostile)
    environment = UserTemplateEnvironment()
    environment.filters["ui_url"] = lambda run: "its page"
    automations = yaml.safe_load((DEPLOYMENTS / "automations.yaml").read_text("utf-8"))["automations"]
    messages = [action for one in automations for action in one["actions"] if "subject" in action]
    assert len(messages) > 4
    for message in messages:
        for part in ("subject", "body"):
            validate_user_template(message[part])
            shown = environment.from_string(message[part]).render(
                event=event, flow_run=run, deployment=deployment
            )
            assert not re.search(r"[<>]|://", shown), shown
