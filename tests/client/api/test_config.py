"""Finding the API server as kubectl finds it, and as the operator's own reader does."""

import base64
import json
import subprocess

import pytest
import yaml

from assetlock.client.api import ConfigError, load_config
from assetlock.client.api.credentials import TokenFile
from assetlock.client.api.proxies import proxy_for
from assetlock.kube import config as operators
from assetlock.kube import proxies as operators_proxies

SERVER = "https://api.example:6443"
PEM = base64.b64encode(b"-----BEGIN-----").decode()


def kubeconfig(*, cluster=None, user=None, context=None, name="one"):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
    }


PLUGIN = {
    "exec": {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "./login",
        "args": ["--now"],
        "env": [{"name": "A", "value": "b"}],
        "interactiveMode": "Never",
        "provideClusterInfo": True,
    }
}

USABLE = {
    "a namespace": kubeconfig(context={"namespace": "team"}),
    "an IPv6 host": kubeconfig(cluster={"server": "https://[fd00::1]:6443/k8s/"}),
    "a proxy, another server name": kubeconfig(
        cluster={"proxy-url": "http://proxy:3128", "tls-server-name": "kubernetes"}
    ),
    "no verification": kubeconfig(cluster={"insecure-skip-tls-verify": True}),
    "data": kubeconfig(
        cluster={"certificate-authority-data": PEM},
        user={"client-certificate-data": PEM, "client-key-data": PEM},
    ),
    "files": kubeconfig(
        cluster={"certificate-authority": "ca.crt"},
        user={"client-certificate": "me.crt", "client-key": "./me.key"},
    ),
    "a token": kubeconfig(user={"token": "t0ken"}),
    "a token file": kubeconfig(user={"tokenFile": "token", "token": "other"}),
    "a password": kubeconfig(user={"username": "ann", "password": "pw"}),
    "impersonation": kubeconfig(
        user={"as": "ann", "as-uid": "7", "as-groups": ["a", "b"], "as-user-extra": {"x.y/why": ["z"]}}
    ),
    "a plugin": kubeconfig(user=PLUGIN),
}


@pytest.fixture
def written(tmp_path):
    """Writes a kubeconfig, among the files that it may name."""
    for name in ("ca.crt", "me.crt", "me.key", "token"):
        (tmp_path / name).write_text("pem")

    def write(fields, name="config"):
        path = tmp_path / name
        path.write_text(fields if isinstance(fields, str) else yaml.safe_dump(fields))
        return path

    return write


@pytest.mark.parametrize("case", USABLE)
def test_the_operators_reader_and_this_one_read_the_same(written, case):
    path = written(USABLE[case])
    ours, theirs = load_config(path, environ={}), operators.load_config(path, environ={})
    assert (ours.server, ours.namespace, ours.proxy, ours.headers) == (
        theirs.server,
        theirs.namespace,
        theirs.proxy,
        theirs.headers,
    )
    fields = ("ca_file", "ca_data", "certificate_file", "certificate_data", "key_file", "key_data")
    for field in (*fields, "server_name", "insecure"):
        assert getattr(ours.tls, field) == getattr(theirs.tls, field)
    assert type(ours.credentials).__name__ == type(theirs.credentials).__name__
    if case == "a plugin":
        plugin, their_plugin = ours.credentials.plugin, theirs.credentials._plugin
        for field in ("command", "api_version", "args", "env", "interactive_mode", "cluster"):
            assert getattr(plugin, field) == getattr(their_plugin, field)


def test_kubectl_merges_a_list_of_files_as_we_do(written, control_plane, tmp_path):
    first = kubeconfig(context={"namespace": "first"}, cluster={"insecure-skip-tls-verify": True})
    first["users"] = []
    del first["current-context"]
    second = kubeconfig(context={"namespace": "second"}, user={"tokenFile": "token"})
    second["clusters"][0]["cluster"]["server"] = "https://second:1"
    second["contexts"].append({"name": "two", "context": {"cluster": "one", "user": "one"}})
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "token").write_text("t0ken")
    paths = (written(first, "a"), tmp_path / "missing", written("", "empty"), written(second, "b/config"))
    listed = ":".join(map(str, paths))
    for context in ("one", "two"):
        command = (control_plane.kubectl_path, "config", "view", "--raw", "--minify", "-o", "json")
        shown = subprocess.run(
            [*command, f"--context={context}"], env={"KUBECONFIG": listed}, capture_output=True, check=True
        )
        seen = json.loads(shown.stdout)
        config = load_config(context=context, environ={"KUBECONFIG": listed})
        assert config.server == seen["clusters"][0]["cluster"]["server"] == SERVER
        assert config.namespace == seen["contexts"][0]["context"].get("namespace", "default")
        assert isinstance(config.credentials, TokenFile)
        assert (
            config.credentials.path
            == tmp_path / "b" / seen["users"][0]["user"]["tokenFile"].rpartition("/")[2]
        )


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ("a: [", "is not YAML"),
        ("just text", "is not a kubeconfig"),
        ({}, "no context is chosen"),
        (kubeconfig() | {"current-context": "three"}, "no context named 'three'"),
        (kubeconfig() | {"clusters": None}, "no cluster named 'one'"),
        (kubeconfig(cluster={"server": "api:6443"}), "server must be a URL"),
        (kubeconfig(cluster={"proxy-url": "socks5://x"}), "a proxy must be a URL"),
        (kubeconfig(cluster={"certificate-authority": "nowhere.crt"}), r"there is no file .*nowhere.crt"),
        (kubeconfig(cluster={"certificate-authority-data": "%"}), "PEM text in base64"),
        (kubeconfig(user={"client-certificate-data": "YQ=="}), "its key go together"),
        (kubeconfig(user={"token": 5}), "token must be text"),
        (kubeconfig(user={"auth-provider": {"name": "gcp"}}), "auth-provider is gone"),
        (kubeconfig(user={"exec": {"apiVersion": "v1", "command": "x"}}), "apiVersion must be one of"),
        (kubeconfig(user={"exec": {}}), "command is missing"),
    ],
)
def test_what_can_not_be_used_is_refused_by_name(written, fields, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load_config(written(fields), environ={})


def test_a_file_that_is_named_must_exist(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        load_config(tmp_path / "nowhere", environ={})
    with pytest.raises(ConfigError, match=r"nowhere.*KUBECONFIG"):
        load_config(environ={"KUBECONFIG": str(tmp_path / "nowhere")})


def test_acting_as_somebody_replaces_who_the_kubeconfig_acts_as(written):
    config = load_config(written(kubeconfig(user={"as": "ann", "as-groups": ["a"]})), environ={})
    assert config.acting_as("bob", ["b", "c"]).headers == (
        ("Impersonate-User", "bob"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Group", "c"),
    )
    assert config.acting_as() is config
    with pytest.raises(ConfigError, match="--as"):
        load_config(written(kubeconfig()), environ={}).acting_as(None, ["b"])


@pytest.mark.parametrize("host", ["10.0.0.1", "fd00::1", "[fd00::1]", "kubernetes.default"])
def test_in_a_pod_the_service_account_is_used(tmp_path, host):
    (tmp_path / "token").write_text("t0ken")
    (tmp_path / "namespace").write_text("team\n")
    environ = {"KUBERNETES_SERVICE_HOST": host, "HOME": str(tmp_path)}
    config = load_config(environ=environ, service_account=tmp_path)
    theirs = operators.load_config(environ=environ, service_account=tmp_path)
    assert (config.server, config.namespace) == (theirs.server, "team")
    assert config.credentials.current().authorization == "Bearer t0ken"


def test_nowhere_to_look_says_where_was_looked(tmp_path):
    with pytest.raises(ConfigError, match="set KUBECONFIG"):
        load_config(environ={"HOME": str(tmp_path)})


def test_nothing_secret_is_shown(written):
    secret = base64.b64encode(b"s3cret").decode()
    user = {"client-certificate-data": secret, "client-key-data": secret, "token": "s3cret"}
    assert "s3cret" not in repr(load_config(written(kubeconfig(user=user)), environ={}).credentials)
    assert "key_data" not in repr(load_config(written(kubeconfig(user=user)), environ={}).tls)


@pytest.mark.parametrize(
    "server", [SERVER, "https://10.1.2.3:6443", "https://[fd00::1]:6443", "https://127.0.0.1:1"]
)
@pytest.mark.parametrize(
    "no_proxy",
    ["", "*", ".example", "example", "*.example", "api.example:6443", "pi.example", "10.0.0.0/8", "fd00::/8"],
)
def test_the_environments_proxies_are_those_of_the_operators_reader(server, no_proxy):
    environ = {"https_proxy": "proxy:3128", "NO_PROXY": no_proxy}
    assert proxy_for(server, environ) == operators_proxies.proxy_for(server, environ)
