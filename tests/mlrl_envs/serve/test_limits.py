"""Access, limits, health and leaks of a server."""

import gc
import http.client
import shutil
import subprocess

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, RefusedError, RemoteEnvError
from mlrl_envs.serve import ServerConfig
from mlrl_envs.serve.messages import SERVICE, message
from mlrl_envs.serve.places import check_options
from mlrl_envs.serve.sessions import Session, SessionStore

TEXTS = {"setup": "A fox waits.", "story": "The fox waited for the snow."}
TOKENS = "0123456789abcdef0", "fedcba98765432100"


@pytest.fixture
def token_files(tmp_path):
    both, files = tmp_path / "both", [tmp_path / name for name in ("one", "two", "wrong")]
    both.write_text("\n".join(TOKENS))
    for file, token in zip(files, (*TOKENS, "wrong-wrong-wrong-wrong"), strict=True):
        file.write_text(f"{token}\n")
    return both, *files


def test_wrong_token_is_refused(start_server, token_files):
    both, one, _, wrong = token_files
    server = start_server(ids=["mlrl/story-v1"], token_file=both)
    server.make("mlrl/story-v1", connection={"token_file": str(one)}).reset(seed=1)
    for connection in ({"token_file": str(wrong)}, None):
        with pytest.raises(RemoteEnvError, match="wants a known token"):
            server.make("mlrl/story-v1", connection=connection)


def test_key_of_another_owner_is_not_found(start_server, token_files):
    both, one, two, _ = token_files
    server = start_server(ids=["mlrl/story-v1"], token_file=both)
    mine, theirs = (
        server.make("mlrl/story-v1", connection={"token_file": str(file)}) for file in (one, two)
    )
    mine.reset(seed=1)
    theirs.reset(seed=1)
    key = mine._episode.session.key
    request = message("ViewRequest")(keys=[key])
    (item,) = theirs._link.send(server.address, "State", request).result().items
    assert item.failure.kind == "unknown"
    reply = theirs._link.send(server.address, "Close", message("CloseRequest")(keys=[key])).result()
    assert reply.closed == 0


def test_token_is_not_sent_in_the_clear(token_files):
    with pytest.raises(InvalidArgumentError, match="in the clear"):
        mlrl_envs.make(
            "remote://far.example:1/mlrl/story-v1", connection={"token_file": str(token_files[1])}
        )


@pytest.mark.parametrize("missing", ["token_file", "tls_cert"])
def test_public_server_needs_a_token_and_tls(tmp_path, missing):
    files = {name: tmp_path / name for name in ("token_file", "tls_cert", "tls_key")}
    del files[missing]
    files.pop("tls_key" if missing == "tls_cert" else "", None)
    with pytest.raises(InvalidArgumentError, match="a public server needs"):
        ServerConfig(ids=["mlrl/story-v1"], public=True, **files)


AUTHORITY = """
[ca]
default_ca = own
[own]
database = index.txt
new_certs_dir = .
serial = serial
default_md = sha256
policy = policy
x509_extensions = extensions
[policy]
commonName = supplied
[extensions]
subjectAltName = IP:127.0.0.1
"""


def _certificate(folder, until):
    """Make a certificate of this machine that is valid from 2020 on."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder.mkdir(exist_ok=True)
    (folder / "ca.cnf").write_text(AUTHORITY)
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01")
    request = "req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem"
    signing = "ca -batch -config ca.cnf -selfsign -keyfile key.pem -in req.pem -out cert.pem"
    times = f"-startdate 20200101000000Z -enddate {until}0101000000Z"
    for command in (
        f"openssl {request} -out req.pem -subj /CN=localhost",
        f"openssl {signing} -notext {times}",
    ):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem", folder / "key.pem"


def test_tls_checks_the_certificate(start_server, tmp_path):
    cert, key = _certificate(tmp_path, 2049)
    other, _ = _certificate(tmp_path / "other", 2049)
    server = start_server(ids=["mlrl/story-v1"], tls_cert=cert, tls_key=key)
    assert server.make("mlrl/story-v1", connection={"ca_file": str(cert)}).reset(seed=1)
    with pytest.raises(RemoteEnvError):
        server.make("mlrl/story-v1", connection={"ca_file": str(other)})
    with pytest.raises(RemoteEnvError):
        server.make("mlrl/story-v1")


def test_expired_certificate_is_refused(start_server, tmp_path):
    cert, key = _certificate(tmp_path, 2021)
    server = start_server(ids=["mlrl/story-v1"], tls_cert=cert, tls_key=key)
    with pytest.raises(RemoteEnvError):
        server.make("mlrl/story-v1", connection={"ca_file": str(cert)})


@pytest.mark.parametrize(
    "options",
    [
        {"data_path": "rows"},
        {"feedback": "os:system"},
        {"scorer": {"kind": "likelihood"}},
        {"judge": {"base_url": "http://10.0.0.1", "model": "m"}},
        {"split": "../../etc/passwd"},
        {"workflow": "secrets.yaml"},
        {"prompts": "posts.jsonl"},
        {"any_option_of_a_plug_in": ["fine", "notes.txt"]},
        {"sandbox": None},
    ],
)
def test_options_that_reach_beyond_the_environment_are_refused(server, options):
    with pytest.raises(InvalidArgumentError, match=r"takes only numbers and words|of the server"):
        check_options(options)
    with pytest.raises(InvalidArgumentError):
        server.make("mlrl/story-v1", **options)


def test_environments_that_are_not_offered_are_unknown(start_server):
    server = start_server(ids=["mlrl/story-v1"])
    with pytest.raises(mlrl_envs.errors.UnknownNameError, match="environment of this server"):
        server.make("mlrl/nim-v0")


def test_reference_answers_need_a_permission(start_server, server):
    closed = start_server(ids=["mlrl/nim-v0"])
    env = closed.make("mlrl/nim-v0")
    env.reset(seed=1)
    with pytest.raises(RefusedError, match="--references"):
        env.reference_actions()
    env = server.make("mlrl/nim-v0")
    env.reset(seed=1)
    assert env.reference_actions()


def test_huge_text_is_an_error_of_the_infrastructure(server):
    env = server.make("mlrl/story-v1")
    env.reset(seed=1)
    with pytest.raises(RemoteEnvError, match="a server takes"):
        env.step({"setup": "x" * 100_000_000, "story": ""})
    assert env.step(TEXTS)[1]


def test_calls_with_too_many_items_are_refused(server):
    env = server.make("mlrl/story-v1")
    request = message("StepRequest")(items=[{} for _ in range(1_025)])
    with pytest.raises(grpc.RpcError) as caught:
        env._link.send(server.address, "Step", request).result()
    assert caught.value.code() is grpc.StatusCode.OUT_OF_RANGE


def test_busy_server_names_a_time_to_wait_and_clients_wait(start_server):
    server = start_server(ids=["mlrl/story-v1"], max_in_flight=4)
    envs = mlrl_envs.make_vec(f"remote://{server.address}/mlrl/story-v1", 4).envs
    mlrl_envs.reset_many(envs, range(4), [None] * 4)
    batcher = server.server.batcher
    batcher.load += 4

    def relieve():
        server.loop.call_later(1.5, lambda: setattr(batcher, "load", batcher.load - 4))

    server.loop.call_soon_threadsafe(relieve)
    assert len(mlrl_envs.step_many(envs, [TEXTS] * 4)) == 4
    assert server.numbers["refused_calls_total"] >= 1


def test_evicted_sessions_cost_no_episode(start_server):
    server = start_server(ids=["mlrl/story-v1"], max_sessions=3)
    remote = mlrl_envs.make_vec(f"remote://{server.address}/mlrl/story-v1", 8, max_turns=2).envs
    local = mlrl_envs.make_vec("mlrl/story-v1", 8, max_turns=2).envs
    for envs in (remote, local):
        mlrl_envs.reset_many(envs, range(8), [None] * 8)
    for a, b in zip(remote, local, strict=True):
        assert a.step(TEXTS) == b.step(TEXTS)
    assert server.numbers["sessions"] <= 3
    assert server.numbers["sessions_evicted_total"] >= 5


def test_sessions_are_released_with_their_environments(server):
    server.forget()
    for seed in range(30):
        env = server.make("mlrl/story-v1")
        env.reset(seed=seed)
        env.step(TEXTS)
        del env
    gc.collect()
    server.make("mlrl/story-v1").reset(seed=1)  # carries the keys
    assert server.numbers["sessions"] <= 2


def test_store_expires_idle_sessions_and_evicts_from_the_largest_owner():
    now = [0.0]
    store = SessionStore(4, seconds=10, clock=lambda: now[0])

    class Place:
        forkable = True

    for number in range(4):
        store.put("greedy", bytes([number]), Session(Place, None, b""))
    store.put("modest", b"x", Session(Place, None, b""))
    assert store.get("greedy", bytes([0])) is None
    assert store.get("modest", b"x") is not None
    now[0] = 9.0
    store.get("modest", b"x")
    now[0] = 11.0
    assert store.expire() == 3
    assert len(store) == 1


def test_store_of_many_sessions_stays_within_its_limit():
    store = SessionStore(1_000, seconds=60)

    class Place:
        forkable = True

    for number in range(100_000):
        store.put("", number.to_bytes(16, "big"), Session(Place, None, b""))
    assert len(store) == 1_000
    assert store.evicted == 99_000


def test_health_reflection_and_metrics_are_served(start_server):
    server = start_server(ids=["mlrl/story-v1"], metrics_port=0)
    server.make("mlrl/story-v1").reset(seed=1)
    with grpc.insecure_channel(server.address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        reply = stub.Check(health_pb2.HealthCheckRequest(service=SERVICE))
        assert reply.status == health_pb2.HealthCheckResponse.SERVING
        asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol=SERVICE)
        calls = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo(
            iter([asked])
        )
        assert next(iter(calls)).file_descriptor_response.file_descriptor_proto
    connection = http.client.HTTPConnection("127.0.0.1", server.server.metrics_port, timeout=60)
    connection.request("GET", "/metrics")
    assert b"\nmlrl_serve_opened_total 1\n" in connection.getresponse().read()


def test_server_without_a_working_sandbox_is_not_healthy(start_server, monkeypatch):
    def broken():
        raise OSError("no namespaces")

    monkeypatch.setattr("mlrl_envs.serve.server._run_program", broken)
    server = start_server(ids=["mlrl/story-v1"], sandbox=True)
    with grpc.insecure_channel(server.address) as channel:
        reply = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
    assert reply.status == health_pb2.HealthCheckResponse.NOT_SERVING


def test_compiled_schema_is_current():
    pytest.importorskip("grpc_tools", reason="grpcio-tools is not installed")
    from mlrl_envs.serve import compile_proto

    path = compile_proto.FOLDER / "descriptor.py"
    assert path.read_text() == compile_proto.source_of(compile_proto.compiled())
