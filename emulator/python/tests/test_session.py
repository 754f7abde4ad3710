"""Sessions: experiments in steps."""

import os
import signal
import threading
import warnings

import pytest

import tipsim
from conftest import SPEC


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


def test_a_session_to_the_end_is_a_run(run, spec, tmp_path):
    with tipsim.Session(spec, tmp_path / "out") as session:
        assert session.mode == "functional" and session.end is None
        found = session.run()
        assert session.result() is found
    assert found.info["fingerprint"] == run.info["fingerprint"]
    assert found.info["cycles"] == run.info["cycles"]
    # Only how long the host took is another.
    del found.report["meta"]
    assert found.report == {key: value for key, value in run.report.items() if key != "meta"}
    assert session.end == "the guest has ended" and session.cycle > 0 and session.console.text
    with pytest.raises(tipsim.Error, match="the session has ended"):
        session.run_until(instructions=1)


def test_steps_end_where_they_are_asked_to(spec, tmp_path):
    with tipsim.Session(spec, tmp_path / "out") as session:
        assert session.run_until(mark="command-start")
        assert session.mode == "timing"
        before, counted = session.instructions, session.counters()
        assert session.run_until(instructions=100_000)
        assert session.instructions - before == 100_000
        assert session.counters()[0]["INST.RET"] - counted[0]["INST.RET"] == 100_000
        cycle = session.cycle + 50_000
        assert session.run_until(cycle=cycle)
        # A step ends at the first instruction that commits after the cycle.
        assert cycle <= session.cycle < cycle + 5_000
        [hart] = session.harts()
        assert hart.registers[0] == 0 and len(hart.registers) == 32
        assert len(session.memory(hart.pc, 4)) == 4 and session.memory(0, 4) == b""
        assert not session.run_until() and session.end == "the guest has ended"
        assert session.result().info["exit_status"] == 0


def test_results_before_the_end_are_of_a_part(spec, tmp_path):
    with tipsim.Session(spec, tmp_path / "out") as session:
        session.run_until(mark="command-start")
        session.run_until(instructions=200_000)
        with pytest.warns(tipsim.PartWarning, match="its session ended it"):
            found = session.result()
    assert found.report["totals"]["cycles"] > 0


def test_cores_are_compared_from_one_checkpoint(run, spec, tmp_path):
    saved = tmp_path / "booted.ckpt"
    with tipsim.Session(spec, tmp_path / "base") as session:
        assert session.run_until(mark="mounted") and session.run_until(mark="mounted")
        session.checkpoint(saved)
        session.run_until(mark="command-start")
        with pytest.raises(tipsim.Error, match="shared folder cannot be saved.*mounted"):
            session.checkpoint(tmp_path / "late.ckpt")
    with pytest.raises(tipsim.Error, match="expected a checkpoint of this guest"):
        tipsim.Session(spec, tmp_path / "other", {"guest.append": "quiet"}, checkpoint=saved)
    assert not (tmp_path / "other.partial").exists()
    cycles = {}
    for entries in (32, 64):
        out = tmp_path / f"rob{entries}"
        with tipsim.Session(spec, out, {"core.rob.entries": entries}, checkpoint=saved) as session:
            cycles[entries] = session.run().report["totals"]["cycles"]
    assert cycles[32] > cycles[64]
    # The default core, whose ROB has 64 entries, does from the checkpoint what it does in one run.
    assert cycles[64] == run.report["totals"]["cycles"]


def test_modes_and_regions_are_ones_own(spec, tmp_path):
    settings = {"run.region": "marked", "record.counters": True}
    with tipsim.Session(spec, tmp_path / "out", settings) as session:
        session.run_until(mark="command-start")
        assert session.mode == "functional"
        session.timing({"rob.entries": 64})
        with pytest.raises(tipsim.Error, match="the first timed part"):
            session.functional()
            session.timing({"rob.entries": 32})
        with session.region():
            session.run_until(instructions=100_000)
        session.run_until(instructions=100_000)
        with session.region():
            session.run_until(instructions=100_000)
        assert not session.run_until()
        found = session.result()
    assert [each["instructions"] for each in found.info["regions"]["each"]] == [100_000, 100_000]
    assert found.info["core"]["rob"]["entries"] == 64


def test_a_sampled_region_says_what_is_timed(spec, tmp_path):
    settings = {"run.sampling.every": 100_000, "run.sampling.unit": 10_000, "record.trace": False}
    with tipsim.Session(spec, tmp_path / "out", settings) as session:
        session.run_until(mark="command-start")
        session.run_until(instructions=1000)
        for change in (session.timing, session.functional):
            with pytest.raises(tipsim.Error, match="run.sampling says what is timed"):
                change()
        assert not session.run_until()
        found = session.result()
    assert found.info["sampling"]["units"] > 1


def test_a_console_is_typed_on(spec, tmp_path):
    settings = {"record.trace": False, "record.profilers": False}
    spec.write_text(SPEC.replace('command = "quickstart 4"\nregion = "command"', ""))
    with tipsim.Session(spec, tmp_path / "out", settings, interactive=True) as session:
        session.console.expect("# ", instructions=10**9)
        session.console.send("echo $((6 * 7))\n")
        assert "42" in session.console.expect("42\r\n", instructions=10**9)
        with pytest.raises(tipsim.Error, match="expected 'never', but the guest waits"):
            session.console.expect("never", instructions=10**6)
        session.console.send("poweroff -f\n")
        assert not session.run_until()
    with tipsim.Session(spec, tmp_path / "out", settings) as session, pytest.raises(tipsim.Error, match="interactive"):
        session.console.send("ls\n")


@pytest.fixture
def default_interrupts():
    """What runs in the background may have been started with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_a_step(spec, tmp_path, capfd, default_interrupts):
    with tipsim.Session(spec, tmp_path / "out", {"run.boot": "timing"}, progress=True) as session:
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            session.run_until()
        before = session.instructions
        assert session.end is None and before > 0
        assert session.run_until(instructions=1000)
        assert session.instructions == before + 1000 and session.end is None
    assert "M instructions" in capfd.readouterr().err


def test_mistakes_are_named(spec, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(tipsim.Error, match="core.rob.entrees"):
        tipsim.Session(spec, out, {"core.rob.entrees": 64})
    with pytest.raises(tipsim.Error, match="none.ckpt"):
        tipsim.Session(spec, out, checkpoint=tmp_path / "none.ckpt")
    with tipsim.Session(spec, out) as session:
        with pytest.raises(ValueError, match="mark: expected one of mounted, command-start, command-stop, start, stop; found begin"):
            session.run_until(mark="begin")
        with pytest.raises(ValueError, match="cycle: expected a number of 64 bits, found -1"):
            session.run_until(cycle=-1)
        with pytest.raises(ValueError, match="hart: expected 0 to 0, found 1"):
            session.memory(0, 8, hart=1)
        with pytest.raises(tipsim.Error, match="another run"):
            tipsim.Session(spec, out)
    # Nothing is left of a session without results.
    assert not out.exists() and not (tmp_path / "out.partial").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session.close()


def test_a_session_that_nobody_holds_is_over(spec, tmp_path):
    session = tipsim.Session(spec, tmp_path / "out")
    child = os.fork()
    if child == 0:
        try:
            session.harts()
        except tipsim.Error as error:
            # The child does not wait for a thread that it does not have.
            del session
            os._exit(7 if "another process" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    del session
    # The folder is free again.
    session = tipsim.Session(spec, tmp_path / "out", {"run.boot": "timing"})
    threading.Timer(0.5, session.interrupt).start()
    assert not session.run_until() and session.end is None
    session.close()
    assert not (tmp_path / "out.partial").exists()
    before = len(os.listdir("/proc/self/task"))
    for _ in range(3):
        with tipsim.Session(spec, tmp_path / "out"):
            pass
    assert len(os.listdir("/proc/self/task")) <= before


def test_a_limit_of_cycles_is_exact(spec, tmp_path):
    limit = 40_000_000
    with tipsim.Session(spec, tmp_path / "out", {"run.max_cycles": limit, "run.boot": "timing"}) as session:
        assert not session.run_until() and f"not done after {limit} cycles" in session.end
        assert limit <= session.cycle < limit + 5_000
