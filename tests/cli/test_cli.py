"""The command line: what it prints, and that every mistake is one message and exit code 2."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from symattn.cli import main

from .. import gallery
from ..shares import one_in

QKV = ["--shape", "Q: T d", "--shape", "K: S d", "--shape", "V: S e"]
ATTENTION = "softmax(Q @ K.T / sqrt(d)) @ V"


@pytest.fixture
def run(capsys):
    """Runs a command and gives what it printed."""

    def runner(*arguments):
        assert main(list(map(str, arguments))) == 0
        return capsys.readouterr().out

    return runner


@pytest.fixture
def fails(capsys):
    """Runs a command that must fail, and gives its one message."""

    def runner(*arguments):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as exit:
            code = exit.code
        out, err = capsys.readouterr()
        assert code == 2
        assert out == ""
        assert err.startswith("symattn: error: ")
        assert err.count("error:") == 1
        assert "Traceback" not in err
        return err

    return runner


@pytest.fixture
def data(tmp_path, rng):
    """An npz file with arrays for attention and its cotangent."""
    path = tmp_path / "arrays.npz"
    shapes = {"Q": (5, 4), "K": (7, 4), "V": (7, 3), "dO": (5, 3)}
    np.savez(path, **{name: rng.normal(size=shape) for name, shape in shapes.items()})
    return path


def attention(q, k, v):
    z = q @ k.T / np.sqrt(q.shape[1])
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return (p / p.sum(axis=1, keepdims=True)) @ v


# --- list and derive ---


def test_list_names_the_derivations_as_the_readme_does(run):
    listed = [tuple(line.split(maxsplit=1)) for line in run("list").splitlines()]
    files = Path(__file__).parents[2].joinpath("derivations").glob("[!_]*.py")
    assert [name for name, _ in listed] == sorted(path.stem.replace("_", "-") for path in files)
    assert gallery.written() == gallery.table(listed), "python -m tests.gallery writes the table again"


def test_derive_prints_text_and_latex(run):
    assert "✓ dZ = P ⊙ (dP − (P ⊙ dP) 𝟏 𝟏ᵀ)" in run("derive", "attention-backward")
    assert r"\begin{align*}" in run("derive", "attention-backward", "--to", "latex")


@pytest.mark.parametrize("name", ["nope", "../cli", "attention_backward", "__init__", ""])
def test_of_an_unknown_derivation_the_nearest_is_told_or_all(fails, name):
    assert re.search("nearest to it is '[a-z-]+'$|there are .*attention-backward, ", fails("derive", name).rstrip())


# --- grad ---

FIVE = [
    "dV = P.T @ dO",
    "dP = dO @ V.T",
    "dZ = P * (dP - rowsum(P * dP))",
    "dQ = dZ @ K / sqrt(d)",
    "dK = dZ.T @ Q / sqrt(d)",
]


@pytest.mark.parametrize("text", [ATTENTION, "Z = Q @ K.T / sqrt(d); P = softmax(Z); P @ V"])
def test_grad_prints_the_five_lines_with_a_reason_each(run, text):
    lines = run("grad", text, *QKV).splitlines()[:5]
    assert [line.partition("#")[0].strip() for line in lines] == FIVE
    assert all(line.partition("#")[2].strip() for line in lines)


def test_grad_takes_variables_intermediates_and_scalars(run):
    out = run("grad", "Z = c * tanh(Q @ K.T / c); softmax(Z) @ V", *QKV, "--scalar", "c", "--wrt", "c, Z")
    assert "dc = " in out
    assert "dZ = " in out
    assert "dQ = " not in out


def test_grad_by_default_leaves_out_what_is_constant(run):
    out = run("grad", "softmax(Q @ K.T, where=M) @ V", *QKV, "--shape", "M: T S, binary")
    assert "dQ" in out
    assert "dM" not in out


def test_grad_to_latex_is_an_align_block(run):
    out = run("grad", ATTENTION, *QKV, "--to", "latex")
    assert out.startswith(r"\begin{align}")
    assert r"\mathrm{d}V &= P^{\top} \, \mathrm{d}O" in out


def test_grad_to_json_describes_each_step(run):
    found = json.loads(run("grad", ATTENTION, *QKV, "--to", "json"))
    assert [f"{s['name']} = {s['expression']}" for s in found["steps"]] == FIVE
    assert all(s["reason"] and s["latex"].startswith(rf"\mathrm{{d}}{s['name'][1:]} = ") for s in found["steps"])
    assert found["steps"][0]["shape"] == ["S", "e"]
    assert found["shapes"]["Q"] == ["T", "d"]
    assert found["cotangent"] == "dO"
    assert found["side_conditions"] == []


def test_grad_to_json_states_side_conditions(run):
    found = json.loads(run("grad", "relu(Q)", "--shape", "Q: T d", "--to", "json"))
    assert any("relu is not differentiable at 0" in s for s in found["side_conditions"])


def test_grad_to_numpy_is_source_that_runs_alone(run, data):
    namespace: dict = {}
    exec(run("grad", ATTENTION, *QKV, "--to", "numpy"), namespace)
    arrays = np.load(data)
    dq, dk, dv = namespace["f"](arrays["Q"], arrays["K"], arrays["V"], arrays["dO"])
    step = 1e-6 * np.eye(4)[1] * np.eye(5)[2][:, None]
    sides = [(attention(arrays["Q"] + s, arrays["K"], arrays["V"]) * arrays["dO"]).sum() for s in (step, -step)]
    assert dq[2, 1] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-6)
    assert dk.shape == (7, 4)
    assert dv.shape == (7, 3)


# --- code ---


@pytest.mark.parametrize(
    "backend",
    ["numpy", pytest.param("torch", marks=pytest.mark.torch), pytest.param("jax", marks=pytest.mark.jax)],
)
def test_code_writes_a_module_that_runs_without_symattn_and_tests_its_gradients(run, tmp_path, backend):
    target, shapes = tmp_path / "attention.py", ["--shape", "Q=T,d", "--shape", "K=S,d", "--shape", "V=S,e"]
    assert run("code", ATTENTION, *shapes, "--grad", "--backend", backend, "-o", target) == ""
    (tmp_path / "hide.py").write_text("import sys\nsys.modules['symattn'] = sys.modules['sympy'] = None\n"
                                      "import runpy\nrunpy.run_path(sys.argv[1], run_name='__main__')\n")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", tmp_path / "hide.py", target], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert [line.partition(" agrees")[0] for line in done.stdout.splitlines()] == [
        f"the gradient by {name}" for name in "QKV"
    ]


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("Z = Q @ K.T / sqrt(d); P = softmax(Z); P @ V", "    P[T, S] = softmax(Z)\n    O[T, e] = P @ V\n"),
        (r"\mathrm{softmax}(QK^\top / \sqrt{d}) V", "    O[T, e] = softmax(Q @ K.T / sqrt(d)) @ V\n"),
    ],
)
def test_code_prints_what_statements_and_latex_say(expression, told, run):
    source = run("code", expression, *QKV)
    assert told in source
    assert "check_gradient" not in source
    found = {"__name__": "attention"}
    exec(source, found)
    assert found["f"](np.ones((2, 3)), np.ones((4, 3)), np.ones((4, 5))).shape == (2, 5)
    assert "check_gradient" in run("code", expression, *QKV, "--grad", "--wrt", "Q,K")


def test_code_ends_in_one_line_where_it_cannot_be_written(fails, tmp_path):
    absent = tmp_path / "absent" / "f.py"
    assert fails("code", "Q", "--shape", "Q: T d", "-o", absent).count("\n") == 1
    assert fails("code", "Q @", "--shape", "Q: T d", "-o", tmp_path / "f.py")
    assert "shape is declared as" in fails("code", "Q", "--shape", "Q", "-o", tmp_path / "f.py")
    assert "invalid choice" in fails("code", "Q", "--shape", "Q: T d", "--backend", "fortran")
    assert not list(tmp_path.iterdir())


# --- eval ---


def test_eval_prints_the_output(run, data):
    arrays = np.load(data)
    out = run("eval", ATTENTION, *QKV, "--data", data)
    assert out == f"O =\n{attention(arrays['Q'], arrays['K'], arrays['V'])}\n"


def test_eval_writes_output_and_gradients(run, data, tmp_path):
    target = tmp_path / "out.npz"
    assert run("eval", f"Y = {ATTENTION}", *QKV, "--data", data, "-o", target) == ""
    assert np.load(target).files == ["Y"]
    run("eval", ATTENTION, *QKV, "--data", data, "--grad", "--wrt", "V,Q", "-o", target)
    with np.load(target) as found, np.load(data) as given:
        assert found.files == ["O", "dV", "dQ"]
        np.testing.assert_allclose(found["O"], attention(given["Q"], given["K"], given["V"]), rtol=1e-13)
        assert found["dQ"].shape == (5, 4)
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".npz"] == []


def test_eval_takes_scalars_and_free_sizes(run, tmp_path):
    np.savez(tmp_path / "a.npz", Q=np.ones((2, 3)))
    out = run("eval", "c * sum(Q) * n", "--shape", "Q: T d", "--shape", "U: n", "--scalar", "c", "--data",
              tmp_path / "a.npz", "--set", "c=2.5", "--set", "n=2")  # fmt: skip
    assert out == "L = 30.0\n"


def test_eval_of_a_loss_needs_no_cotangent(run, tmp_path):
    np.savez(tmp_path / "a.npz", Q=np.arange(6.0).reshape(2, 3))
    out = run("eval", "sum(Q * Q)", "--shape", "Q: T d", "--data", tmp_path / "a.npz", "--grad")
    assert out == f"L = 55.0\ndQ =\n{2 * np.arange(6.0).reshape(2, 3)}\n"


def test_eval_takes_a_mask_of_booleans_with_an_empty_row(run, tmp_path, rng):
    np.savez(tmp_path / "a.npz", B=rng.normal(size=(2, 3)), M=np.array([[True, False, False], [False] * 3]))
    shapes = ["--shape", "B: T S", "--shape", "M: T S, binary"]
    out = run("eval", "softmax(B, where=M)", *shapes, "--data", tmp_path / "a.npz")
    assert out == "O =\n[[1. 0. 0.]\n [0. 0. 0.]]\n"


def test_an_output_may_have_any_name(run, data, tmp_path):
    run("eval", "file = Q @ K.T", *QKV, "--data", data, "-o", tmp_path / "out.npz")
    assert np.load(tmp_path / "out.npz")["file"].shape == (5, 7)


# --- mistakes ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grad", "Q @ K", *QKV], "did you mean K.T"),
        (["grad", "softmin(Q)", *QKV], "did you mean softmax"),
        (["grad", "__import__('os').system('true')", *QKV], "only functions called by name"),
        (["grad", "Q @ R", *QKV], "'R' is not declared: declared are Q[T, d], K[S, d], V[S, e]"),
        (["grad", "Q +", *QKV], "cannot be read"),
        (["grad", "", *QKV], "nothing to read"),
        (["grad", "9**9**9 * Q", *QKV], "too large"),
        (["grad", "Q", "--shape", "Q: T 0"], "positive"),
        (["grad", "Q", "--shape", "Q T"], "declared as"),
        (["grad", "Q", "--shape", "Q: T", "--shape", "Q: S"], "declared twice"),
        (["grad", "Q", "--shape", "Q: T", "--scalar", "Q"], "declared twice"),
        (["grad", "Q", "--shape", "Q: T", "--scalar", "T"], "'T'"),
        (["grad", "Q", "--shape", "Q: T", "--scalar", "a b"], "cannot be a name"),
        (["grad", ATTENTION, *QKV, "--wrt", "Q,W"], "'W' is none of"),
        (["grad", ATTENTION, *QKV, "--wrt", "T"], "'T' is none of"),
        (["grad", "where(M, 1, 0)", "--shape", "M: T, binary"], "--wrt"),
        (["grad", "where(M, Q, 0)", "--shape", "M: T, binary", "--shape", "Q: T", "--wrt", "M"], "constant"),
        (["grad", ATTENTION, *QKV, "--to", "pdf"], "invalid choice"),
        (["grad"], "EXPR"),
        (["integrate"], "invalid choice"),
        ([], "COMMAND"),
        (["eval", "Q", "--shape", "Q: T"], "--data"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_message_and_exit_code_2(fails, arguments, message):
    assert message in fails(*arguments)


def saved(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Q": np.ones((2, 3))}, "lacks the arrays K[S, d], V[S, e]; it holds Q"),
        ({}, "it holds no arrays"),
        ({"Q": np.ones((2, 3)), "K": np.ones((4, 5)), "V": np.ones((4, 2))}, "axis -1"),
        ({"Q": np.ones(3), "K": np.ones((4, 3)), "V": np.ones((4, 2))}, "Q[T, d]"),
        ({"Q": np.ones((0, 3)), "K": np.ones((4, 3)), "V": np.ones((4, 2))}, "empty"),
        ({"Q": np.full((2, 3), "x"), "K": np.ones((4, 3)), "V": np.ones((4, 2))}, "dtype <U1"),
        ({"Q": np.ones((2, 3), complex), "K": np.ones((4, 3)), "V": np.ones((4, 2))}, "complex128"),
        ({"Q": np.full((2, 3), None), "K": np.ones((4, 3)), "V": np.ones((4, 2))}, "pickle"),
    ],
    ids=["missing", "none", "size", "rank", "empty", "text", "complex", "object"],
)
def test_arrays_that_cannot_be_used_are_named_and_nothing_is_written(fails, tmp_path, arrays, message):
    path = saved(tmp_path / "in.npz", **arrays)
    assert message in fails("eval", ATTENTION, *QKV, "--data", path, "-o", tmp_path / "out.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["in.npz"]


def test_a_missing_cotangent_is_named(fails, tmp_path):
    path = saved(tmp_path / "in.npz", Q=np.ones((2, 3)), K=np.ones((4, 3)), V=np.ones((4, 2)))
    assert "lacks the arrays dO[T, e]" in fails("eval", ATTENTION, *QKV, "--data", path, "--grad")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 broken", b"\x80\x04K\x01.", b"text"])
def test_a_file_that_is_no_npz_is_an_error(fails, tmp_path, content):
    (tmp_path / "in.npz").write_bytes(content)
    assert "in.npz" in fails("eval", "Q", "--shape", "Q: T", "--data", tmp_path / "in.npz")


def test_a_damaged_npz_is_an_error(fails, tmp_path):
    path = saved(tmp_path / "in.npz", Q=np.ones(1000))
    whole = path.read_bytes()
    path.write_bytes(whole[:600] + b"\xff" * 50 + whole[650:])
    assert "in.npz" in fails("eval", "Q", "--shape", "Q: T", "--data", path)


def test_one_array_without_a_name_is_an_error(fails, tmp_path):
    np.save(tmp_path / "in.npy", np.ones(3))
    assert "np.savez" in fails("eval", "Q", "--shape", "Q: T", "--data", tmp_path / "in.npy")


def test_a_missing_file_or_folder_is_an_error(fails, tmp_path, data):
    assert "absent.npz" in fails("eval", "Q", "--shape", "Q: T d", "--data", tmp_path / "absent.npz")
    assert "no folder" in fails("eval", "Q", "--shape", "Q: T d", "--data", data, "-o", tmp_path / "absent" / "o.npz")


def test_an_output_that_cannot_be_replaced_leaves_nothing_behind(fails, tmp_path, data):
    (tmp_path / "out").mkdir()
    fails("eval", "Q", "--shape", "Q: T d", "--data", data, "-o", tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arrays.npz", "out"]


@pytest.mark.parametrize("setting", ["c", "c=x", "q=1", "c=", "=1"])
def test_a_setting_that_is_none_is_an_error(fails, tmp_path, setting):
    path = saved(tmp_path / "in.npz", Q=np.ones(3))
    fails("eval", "c * Q", "--shape", "Q: T", "--scalar", "c", "--data", path, "--set", setting)


def test_a_scalar_without_a_value_is_asked_for(fails, tmp_path):
    path = saved(tmp_path / "in.npz", Q=np.ones(3))
    assert "c=" in fails("eval", "c * Q", "--shape", "Q: T", "--scalar", "c", "--data", path)


def test_the_process_ends_with_code_2_and_without_a_traceback():
    run = subprocess.run([sys.executable, "-m", "symattn.cli", "grad", "x"], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.startswith("symattn: error: 'x' is not declared")
    assert "Traceback" not in run.stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m symattn.cli derive attention-backward | head -c 1"
    run = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert run.stderr == ""


GUIDE_COMMANDS = {
    "list": ["list"],
    "derive": ["derive", "softmax-jacobian", "--to", "latex"],
    "grad": ["grad", ATTENTION, *QKV, "--to", "latex"],
    "verify": ["verify", "online-softmax"],
    "eval": ["eval", "Z = Q @ K.T / sqrt(d); softmax(Z) @ V", *QKV, "--data", "arrays.npz", "--grad", "-o", "out.npz"],
    "code": ["code", ATTENTION, "--shape", "Q=T,d", "--shape", "K=S,d", "--shape", "V=S,e", "--grad", "-o", "f.py"],
    "prove": [
        *["prove", "softmax(Pi @ X)", "Pi @ softmax(X)", "--shape", "X: n d", "--shape", "Pi: n n"],
        *["--given", "Pi: permutation"],
    ],
    "prove a bound": ["prove", "Z = Q @ K.T; softmax(Z) <= 1", "--shape", "Q: T d", "--shape", "K: S d"],
    "variance": [
        *["variance", "q @ k / sqrt(d)", "--shape", "q: d", "--shape", "k: d"],
        *["--law", "q: iid", "--law", "k: iid mean=mu"],
    ],
    "variance of an entry": [
        *["variance", "Q @ K.T", "--shape", "Q: T d", "--shape", "K: S d"],
        *["--law", "Q: sphere", "--law", "K: iid laplace", "--entry", "i,j"],
    ],
}


@pytest.mark.parametrize("name", one_in(4, GUIDE_COMMANDS))
def test_the_commands_of_the_guide_run_in_a_process_of_their_own(name, data):
    command = [sys.executable, "-m", "symattn.cli", *GUIDE_COMMANDS[name]]
    run = subprocess.run(command, capture_output=True, text=True, cwd=data.parent)
    assert (run.returncode, run.stderr) == (0, "")


def test_an_unpickled_tensor_has_its_operators_in_a_process_of_its_own(tmp_path):
    import pickle

    import symattn as sa

    path = tmp_path / "tensor.pickle"
    path.write_bytes(pickle.dumps(sa.softmax(sa.tensor("Q", "T d") @ sa.tensor("K", "S d").T)))
    program = f"import pickle; x = pickle.loads(open({str(path)!r}, 'rb').read()); print(x.T * 2 + 1)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "2 * softmax(Q @ K.T).T + 1\n"


# --- formulas in LaTeX ---


SCORES = r"\mathrm{softmax}\left(\frac{QK^\top}{\sqrt{d}}\right)V"


def test_an_expression_may_be_latex(run):
    found = json.loads(run("grad", SCORES, *QKV, "--to", "json"))
    assert [f"{s['name']} = {s['expression']}" for s in found["steps"]] == FIVE
    assert run("prove", r"(AB)^\top = B^\top A^\top", "--shape", "A: n m", "--shape", "B: m k").startswith("proved\n")
    told = run(
        "variance", r"q^\top k / \sqrt{d}", "--shape", "q: d", "--shape", "k: d", "--law", "q: iid", "--law", "k: iid"
    )
    assert "variance: 1" in told


def test_indices_in_latex_are_counted_from_where_it_is_said(run, fails):
    shape = ("--shape", "x: n")
    counted = [run("grad", r"x_1^2", *shape, f"--first-index={first}", "--to", "numpy") for first in (0, 1)]
    assert [("x[..., 1]" in code, "x[..., 0]" in code) for code in counted] == [(True, False), (False, True)]
    assert run("prove", r"\sum_{i=1}^n x_i^2 \ge x_1^2", *shape, "--first-index", "1", "--budget", "1")
    assert "give first_index=0 or first_index=1" in fails("grad", r"x_1^2", *shape)


@pytest.mark.parametrize("text", [r"Z = QK^\top; Z V", r"Z = QK^\top \\ Z V", "Z = Q K; Z V"])
def test_statements_in_latex_end_by_semicolons_or_rows_and_need_no_backslash(run, text):
    shapes = ("--shape", "Q: T T", "--shape", "K: T T", "--shape", "V: T e")
    assert run("grad", text, *shapes).startswith("dV = Z.T @ dO")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["grad", r"\frac{Q K^\top}{", *QKV], "{ is not closed"),
        (["grad", r"Q \le 2 Q", *QKV], "an expression of tensors is asked for here"),
        (["prove", r"\mathrm{softmax}(Q)", *QKV], "and no claim, such as Z = Q K"),
        (["grad", r"Q \mathbf{W}", *QKV], "W"),
    ],
    ids=lambda part: part if isinstance(part, str) else part[1],
)
def test_latex_that_is_not_meant_is_refused_in_one_line(fails, words, said):
    assert said in fails(*words)
