"""`evaluate` on a model behind HTTP: limits, prices, cache, dry run, interruption."""

from __future__ import annotations

import shlex
import signal
import time
from pathlib import Path

import pytest

from omnidata.tasks.omnigui.load import load
from tests.adapters.servers import Fault
from tests.cli.asking import WAIT, evaluate, info, server
from tests.cli.running import Started, as_json, omnidata
from tests.goldens.worlds import build
from tests.trees import read_lines

PRICES = """
date = 2026-11-01
currency = "EUR"
[models."openai:tiny"]
input = 10_000
output = 20_000
"""


@pytest.fixture
def prices(tmp_path: Path) -> Path:
    path = tmp_path / "prices.toml"
    path.write_text(PRICES)
    return path


def test_a_model_behind_http_is_asked_within_its_limits(
    few: Path, tmp_path: Path, prices: Path
) -> None:
    run = tmp_path / "run"
    with server(lambda number: Fault(text=WAIT.text, delay_s=0.05)) as asked:
        done = omnidata(
            *evaluate(asked, few), "--out", run, "--limit", "8", "--json",
            "--concurrency", "2", "--prices", prices, "-T", "modalities=I",
        )  # fmt: skip
    assert as_json(done)["outcomes"] == {"ok": 8}
    assert (asked.count, asked.most) == (8, 2)
    usage = info(run)["usage"]
    assert {"requests": 8, "input_tokens": 800, "output_tokens": 80}.items() <= usage.items()
    assert (usage["cost"], usage["currency"]) == (9.6, "EUR")


def test_a_dry_run_shows_what_the_server_would_see_and_sends_nothing(
    few: Path, tmp_path: Path
) -> None:
    with server() as asked:
        arguments = evaluate(asked, few, "--out", tmp_path / "run")
        arguments += ["-M", "frame_times=false", "--limit", "1"]
        seen = as_json(omnidata(*arguments, "--dry-run", "--json"))
        printed = omnidata(*arguments, "--dry-run").stdout
        assert asked.count == 0
        assert not (tmp_path / "run").exists()
        omnidata(*arguments)
    parts = [part for message in seen["conversation"] for part in message["parts"]]
    said = [line.partition(": ")[2] for line in asked.asked[0].seen]
    assert [p["text"] for p in parts if "text" in p] == [
        line.removeprefix("text ") for line in said if line.startswith("text ")
    ]
    media = [part for part in parts if "text" not in part]
    assert sum(part.get("frames", 1) for part in media) == len(said) - (len(parts) - len(media))
    assert {part["kind"] for part in media} == {"image", "video", "audio"}
    for part in parts:
        assert part.get("text", part.get("path")) in printed
    assert "4 frames at 0.0, " in printed
    assert seen["bytes"] == pytest.approx(len(str(asked.asked[0].payload)), rel=0.02)


@pytest.mark.parametrize("spec", ["openai:gpt-4o", "gemini:gemini-2.5-pro", "gemini-2.5-pro"])
def test_a_dry_run_needs_no_key_and_a_run_does(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    arguments = ("evaluate", "omnigui", few, "--model", spec, "--out", tmp_path / "run")
    seen = as_json(omnidata(*arguments, "--limit", "1", "--dry-run", "--json"))
    assert seen["bytes"] > 1000
    assert "there is no key" in omnidata(*arguments, "--limit", "1", code=2).stderr
    assert not (tmp_path / "run").exists()


def test_the_estimate_counts_what_is_left_and_learns_from_answers(
    few: Path, tmp_path: Path, prices: Path
) -> None:
    steps = len(load(few).steps)
    with server() as asked:
        arguments = evaluate(asked, few, "--out", tmp_path / "run")
        arguments += ["--prices", prices, "-T", "modalities=I"]
        guessed = as_json(omnidata(*arguments, "--dry-run", "--json"))
        omnidata(*arguments, "--limit", "5")
        learned = as_json(omnidata(*arguments, "--dry-run", "--json"))
        assert asked.count == 5
        printed = omnidata(*arguments, "--dry-run").stdout
    assert (guessed["steps"], guessed["answered"], guessed["requests"]) == (steps, 0, steps)
    assert guessed["tokens"]["output"] == 4096 * steps
    assert "texts only" in guessed["tokens"]["how"]
    left = steps - 5
    assert (learned["answered"], learned["requests"]) == (5, left)
    assert (learned["tokens"]["input"], learned["tokens"]["output"]) == (100 * left, 10 * left)
    assert learned["tokens"]["image"] == 40 * left
    assert learned["cost"]["amount"] == pytest.approx(1.2 * left)
    assert f"cost: {1.2 * left:.2f} EUR (prices of 2026-11-01" in printed


def test_a_dry_run_of_a_baseline_says_that_it_sends_nothing(few: Path, tmp_path: Path) -> None:
    done = omnidata(
        "evaluate", "omnigui", few, "--model", "baseline:center", "--out", tmp_path / "run",
        "--dry-run",
    )  # fmt: skip
    assert "to send: nothing, a baseline answers on this machine" in done.stdout
    assert "tokens" not in done.stdout
    assert "[screenshot " in done.stdout
    assert not (tmp_path / "run").exists()


def test_a_budget_ends_a_run_which_goes_on_with_a_larger_one(few: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with server() as asked:
        arguments = evaluate(asked, few, "--out", run, "--limit", "20")
        arguments += ["--concurrency", "1", "-T", "modalities=I"]
        done = omnidata(*arguments, "--max-tokens", "1000", code=1)
        assert asked.count == 9  # 110 tokens each
        assert "--max-tokens 1000: 9 answers used 990" in done.stderr
        assert "the same command resumes: omnidata evaluate omnigui" in done.stderr
        omnidata(*arguments, "--max-tokens", "1000", code=1)
        assert asked.count == 9
        omnidata(*arguments, "--max-tokens", "10000")
        assert asked.count == 20


def test_a_budget_holds_for_many_requests_at_a_time(few: Path, tmp_path: Path) -> None:
    with server(lambda number: Fault(text=WAIT.text, delay_s=0.02)) as asked:
        arguments = evaluate(asked, few, "--out", tmp_path / "run", "-T", "modalities=I")
        done = omnidata(*arguments, "--max-tokens", "2000", "--concurrency", "16", code=1)
        assert asked.count == 18  # 110 tokens each
        assert asked.most > 1
    assert "--max-tokens 2000: 18 answers used 1980" in done.stderr


def test_a_limit_on_the_cost_needs_a_price_before_the_first_request(
    few: Path, tmp_path: Path, prices: Path
) -> None:
    with server() as asked:
        arguments = evaluate(asked, few, "--out", tmp_path / "run", "--max-cost", "1")
        other = ["--model", "openai:x", "--prices", str(prices)]
        for more in ([], other):
            assert "has no price" in omnidata(*arguments, *more, code=2).stderr
        assert asked.count == 0
    assert not (tmp_path / "run").exists()


def test_answers_out_of_the_cache_are_not_asked_or_paid_again(few: Path, tmp_path: Path) -> None:
    with server() as asked:
        arguments = evaluate(asked, few, "--limit", "6", "--json")
        arguments += ["--cache", tmp_path / "answers.db", "-T", "modalities=I"]
        first = omnidata(*arguments, "--out", tmp_path / "1")
        sent = asked.count
        second = omnidata(*arguments, "--out", tmp_path / "2")
        assert asked.count == sent == 6
    assert as_json(first) == as_json(second)
    lines = read_lines(tmp_path / "2" / "predictions.jsonl")
    assert all(line["receipt"]["cached"] for line in lines)
    assert info(tmp_path / "2")["usage"]["requests"] == 0


def test_a_damaged_cache_is_an_error_and_nothing_is_asked(few: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.db").write_text("no database " * 1000)
    with server() as asked:
        done = omnidata(
            *evaluate(asked, few), "--out", tmp_path / "run",
            "--cache", tmp_path / "answers.db", code=2,
        )  # fmt: skip
        assert asked.count == 0
    assert "answers.db: the cache cannot be used" in done.stderr
    assert "Fix: remove answers.db" in done.stderr


def test_steps_asked_with_less_than_their_media_are_counted_and_exit_with_1(
    few: Path, tmp_path: Path
) -> None:
    with server() as asked:
        arguments = evaluate(asked, few, "--limit", "4")
        arguments += ["-M", "accepts=image,video"]
        refused = omnidata(*arguments, "--out", tmp_path / "1", code=2)
        assert asked.count == 0
        assert "degrade=true" in refused.stderr
        done = omnidata(*arguments, "-M", "degrade=true", "--out", tmp_path / "2", code=1)
    assert "4 asked without some of their media" in done.stderr
    assert "overall" in done.stdout


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--attempts", "0"), ("--rpm", "-1"), ("--max-cost", "0"), ("--shard", "0/2"),
     ("--concurrency", "0"), ("--timeout", "nan"), ("--prices", "none.toml")],
)  # fmt: skip
def test_a_limit_that_makes_no_sense_is_refused(
    few: Path, tmp_path: Path, flag: str, value: str
) -> None:
    out = tmp_path / "run"
    omnidata(
        "evaluate", "omnigui", few, "--model", "baseline:center", "--out", out, flag, value,
        code=2,
    )  # fmt: skip
    assert not out.exists()


def test_the_command_printed_at_an_interrupt_goes_on(few: Path, tmp_path: Path) -> None:
    run = tmp_path / "a run; with 'signs'"
    with server(lambda number: Fault(text=WAIT.text, delay_s=0.05)) as asked:
        arguments = [*map(str, evaluate(asked, few, "--out", run, "--limit", "28"))]
        arguments += ["--concurrency", "1", "-T", "modalities=I"]
        with Started(*arguments) as command:
            deadline = time.monotonic() + 60
            while asked.count < 5 and time.monotonic() < deadline:
                time.sleep(0.01)
            command.send_signal(signal.SIGINT)
            _, errors = command.communicate(timeout=60)
        assert command.returncode == 130
        (line,) = [line for line in errors.splitlines() if "the same command resumes: " in line]
        program, *again = shlex.split(line.partition("resumes: ")[2])
        assert (program, again) == ("omnidata", arguments)
        done = len(read_lines(run / "predictions.jsonl"))
        assert 4 <= done < 28
        omnidata(*again)
        assert asked.count <= 29
    assert len({line["sample_id"] for line in read_lines(run / "predictions.jsonl")}) == 28


CALL = (
    '<tool_call>\n{"name": "mobile_use", "arguments": {"action": "wait", "time": 2}}\n</tool_call>'
)
ROW = '[agent]\nwire = "openai"\nmodel = "tiny"\nbase_url = "{}"\nkey_optional = true\n'


def test_a_preset_names_the_dialect_in_which_its_model_is_asked(few: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "models.toml", tmp_path / "run"
    with server(lambda number: Fault(text=CALL)) as asked:
        table.write_text(ROW.format(f"{asked.url}/v1") + 'dialect = "qwen3"\n')
        model = ("--model", "agent", "--models", table, "--limit", "4")
        whole = ("evaluate", "omnigui", few, *model)
        done = omnidata(*whole, "--out", out, "--json")
        assert "agent is asked in its dialect, qwen3; -T dialect=unified uses" in done.stderr
        assert as_json(done)["dialect"]["read"] == 4
        assert info(out)["options"]["dialect"] == "qwen3"
        assert "mobile_use" in str(asked.asked[0].payload)
        omnidata(*whole, "--out", out)  # resumes
        again = omnidata("score", "omnigui", few, out, "--json")
        assert as_json(again)["dialect"]["name"] == "qwen3"
        assert asked.count == 4

        plain = omnidata(*whole, "-T", "dialect=unified", "--out", tmp_path / "plain", "--json")
        assert "dialect" not in plain.stderr
        assert "dialect" not in as_json(plain)
        refused = omnidata(*whole, "-T", "dialect=unified", "--out", out, code=2).stderr
        assert 'options.dialect: "qwen3" there, null now' in refused

        suite = tmp_path / "suite.toml"
        suite.write_text(
            f'out = "runs"\n[[tasks]]\ntask = "omnigui"\ndata = "{few}"\nlimit = 2\n'
            '[[models]]\nmodel = "agent"\nmodels = "models.toml"\n'
            '[[models]]\nmodel = "baseline:center"\n'
        )
        first, second = as_json(omnidata("suite", suite, "--json"))
        assert first["results"]["dialect"]["name"] == "qwen3"
        assert "dialect" not in second["results"]

    video = build("idm-single", tmp_path / "idm")
    said = omnidata("evaluate", "idm-single", video, *model, "--dry-run", "--out", "x").stderr
    assert "agent is asked in the words of idm-single, not in its dialect qwen3: " in said


def test_a_preset_of_an_unknown_dialect_is_refused_by_name(few: Path, tmp_path: Path) -> None:
    table = tmp_path / "models.toml"
    table.write_text(ROW.format("http://127.0.0.1:9/v1") + 'dialect = "qwen9"\n')
    said = omnidata(
        "evaluate", "omnigui", few, "--model", "agent", "--models", table, "--out", "x", code=2
    ).stderr
    assert "[agent] dialect = 'qwen9' in the table of models" in said
    assert "qwen3" in said
