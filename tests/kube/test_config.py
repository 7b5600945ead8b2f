"""Finding the API server as kubectl finds it."""

import base64
import json

import pytest
import yaml

from assetlock.kube.config import ConfigError, load_config
from assetlock.kube.credentials import Credential, TokenFile
from assetlock.kube.proxies import proxy_for

SERVER = "https://api.example:6443"


def kubeconfig(*, cluster=None, user=None, context=None, name="one"):
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, **(context or {})}}],
        "clusters": [{"name": name, "cluster": {"server": SERVER, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
    }


@pytest.fixture
def load(tmp_path):
    """Writes a kubeconfig and loads it."""

    def loaded(fields, *, context=None, environ=None):
        path = tmp_path / "config"
        path.write_text(fields if isinstance(fields, str) else yaml.safe_dump(fields))
        return load_config(path, context, environ=environ or {})

    return loaded


def test_the_current_context_names_server_and_namespace(load):
    config = load(kubeconfig(context={"namespace": "team"}))
    assert (config.server, config.namespace) == (SERVER, "team")


def test_a_namespace_that_is_not_named_is_the_default_one(load):
    assert load(kubeconfig()).namespace == "default"


def test_another_context_may_be_asked_for(load):
    fields = kubeconfig()
    fields["contexts"].append({"name": "two", "context": {"cluster": "one", "namespace": "other"}})
    assert load(fields, context="two").namespace == "other"


async def test_relative_paths_start_at_the_folder_of_the_file(load, tmp_path):
    for name in ("ca.crt", "me.crt", "me.key"):
        (tmp_path / name).write_text("pem")
    (tmp_path / "token").write_text("t0ken\n")
    files = {"client-certificate": "me.crt", "client-key": "./me.key", "tokenFile": "token"}
    config = load(kubeconfig(cluster={"certificate-authority": "ca.crt"}, user=files))
    assert [path.resolve() for path in config.tls.files()] == [
        tmp_path / "ca.crt",
        tmp_path / "me.crt",
        tmp_path / "me.key",
    ]
    assert (await config.credentials.current()).authorization == "Bearer t0ken"


def test_data_in_the_file_is_pem_in_base64(load):
    data = base64.b64encode(b"-----BEGIN-----").decode()
    user = {"client-certificate-data": data, "client-key-data": data}
    tls = load(kubeconfig(cluster={"certificate-authority-data": data}, user=user)).tls
    assert tls.ca_data == tls.certificate_data == tls.key_data == "-----BEGIN-----"


def test_the_key_is_not_shown_when_the_configuration_is(load):
    data = base64.b64encode(b"s3cret").decode()
    user = {"client-certificate-data": data, "client-key-data": data, "token": "s3cret"}
    config = load(kubeconfig(user=user))
    assert "s3cret" not in repr(config.credentials)
    assert "key_data" not in repr(config.tls)


async def test_a_username_and_a_password_make_a_header(load):
    config = load(kubeconfig(user={"username": "ann", "password": "pw"}))
    assert (await config.credentials.current()).authorization == "Basic YW5uOnB3"


def test_the_name_in_the_servers_certificate_may_be_another(load):
    config = load(kubeconfig(cluster={"tls-server-name": "kubernetes", "insecure-skip-tls-verify": True}))
    assert (config.tls.server_name, config.tls.insecure) == ("kubernetes", True)


def test_a_proxy_in_the_file_goes_before_one_in_the_environment(load):
    fields = kubeconfig(cluster={"proxy-url": "http://proxy:3128"})
    assert load(fields, environ={"HTTPS_PROXY": "http://other"}).proxy == "http://proxy:3128"
    assert load(kubeconfig(), environ={"HTTPS_PROXY": "http://other"}).proxy == "http://other"


def test_impersonation_becomes_headers(load):
    user = {"as": "ann", "as-groups": ["a", "b"], "as-user-extra": {"example.com/why": ["x"]}}
    assert load(kubeconfig(user=user)).headers == (
        ("Impersonate-User", "ann"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-example.com%2Fwhy", "x"),
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
        (kubeconfig(cluster={"proxy-url": "socks5://x"}), "socks5:// are not supported"),
        (kubeconfig(cluster={"certificate-authority": "nowhere.crt"}), "there is no file .*nowhere.crt"),
        (kubeconfig(cluster={"certificate-authority-data": "%"}), "PEM text in base64"),
        (kubeconfig(user={"client-certificate-data": "YQ=="}), "its key go together"),
        (kubeconfig(user={"token": 5}), "token must be text"),
        (kubeconfig(user={"auth-provider": {"name": "gcp"}}), "auth-provider is gone"),
        (kubeconfig(user={"exec": {"apiVersion": "v1", "command": "x"}}), "apiVersion must be one of"),
        (kubeconfig(user={"exec": {}}), "command is missing"),
    ],
)
def test_what_can_not_be_used_is_refused_by_name(load, fields, complaint):
    with pytest.raises(ConfigError, match=complaint):
        load(fields)


def test_a_file_that_is_named_must_exist(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        load_config(tmp_path / "nowhere", environ={})
    with pytest.raises(ConfigError, match=r"nowhere.*KUBECONFIG"):
        load_config(environ={"KUBECONFIG": str(tmp_path / "nowhere")})


def test_of_several_files_the_first_to_name_something_wins(tmp_path):
    first, second = tmp_path / "a" / "config", tmp_path / "b" / "config"
    for path in (first, second):
        path.parent.mkdir()
        (path.parent / "token").write_text(path.parent.name)
    first.write_text(yaml.safe_dump({**kubeconfig(context={"namespace": "first"}), "users": []}))
    second.write_text(
        yaml.safe_dump(kubeconfig(context={"namespace": "second"}, user={"tokenFile": "token"}))
    )
    config = load_config(environ={"KUBECONFIG": f"{first}:{tmp_path / 'missing'}:{second}"})
    assert config.namespace == "first"
    assert config.credentials._path == tmp_path / "b" / "token"


@pytest.fixture
def service_account(tmp_path):
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("t0ken")
    (folder / "namespace").write_text("assetlock-system")
    return folder


@pytest.mark.parametrize(
    ("host", "server"),
    [
        ("10.0.0.1", "https://10.0.0.1:443"),
        ("fd00::1", "https://[fd00::1]:443"),
        ("[fd00::1]", "https://[fd00::1]:443"),
        ("::1", "https://[::1]:443"),
        ("kubernetes.default", "https://kubernetes.default:443"),
    ],
)
def test_in_a_pod_the_service_account_is_used(tmp_path, service_account, host, server):
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    config = load_config(environ=environ, service_account=service_account)
    assert (config.server, config.namespace) == (server, "assetlock-system")
    assert isinstance(config.credentials, TokenFile)


def test_a_pod_without_a_token_is_told_so(tmp_path):
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match="no ServiceAccount token"):
        load_config(environ=environ, service_account=tmp_path)


def test_nowhere_to_look_says_where_was_looked(tmp_path):
    with pytest.raises(ConfigError, match="set KUBECONFIG"):
        load_config(environ={"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("no_proxy", "proxied"),
    [
        ("", True),
        ("*", False),
        ("other,.example", False),
        ("example", False),
        ("*.example", False),
        ("api.example:6443", False),
        ("api.example:443", True),
        ("pi.example", True),
        ("10.0.0.0/8", True),
    ],
)
def test_no_proxy_excludes_names_and_domains(no_proxy, proxied):
    environ = {"https_proxy": "proxy:3128", "NO_PROXY": no_proxy}
    assert proxy_for(SERVER, environ) == ("http://proxy:3128" if proxied else None)


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxied"),
    [
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "nonsense/8", True),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://[fd00::1]:6443", "fd00::1", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("https://localhost:6443", "", False),
    ],
)
def test_no_proxy_excludes_addresses_and_networks_and_this_machine_always(server, no_proxy, proxied):
    assert bool(proxy_for(server, {"HTTPS_PROXY": "http://p", "NO_PROXY": no_proxy})) is proxied


def test_a_credential_is_not_shown():
    assert "s3cret" not in repr(Credential("Bearer s3cret", "cert", json.dumps("s3cret")))
