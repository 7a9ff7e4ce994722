import pytest

from mlrl_envs.hosts import is_loopback


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1"])
def test_addresses_of_this_machine_are_known(host):
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "10.0.0.1", "::", "127.example.org", "127.0.0.1.example.org"])
def test_other_hosts_are_not_of_this_machine(host):
    assert not is_loopback(host)
