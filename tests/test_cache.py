import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from monograph import cache as cache_module
from monograph.cache import Cache, key, opened, versions

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def stable(monkeypatch):
    monkeypatch.setattr(cache_module, "is_stable", lambda: True)


def unwanted(text):
    pytest.fail(text)


@pytest.fixture
def store(tmp_path):
    cache = opened(tmp_path / "a" / "cache", unwanted)
    assert cache is not None
    return cache


def files(cache):
    return sorted(path for path in cache.directory.rglob("*") if path.is_file())


def test_what_is_put_is_got(store):
    name = key("text")
    assert store.get(name) is None
    store.put(name, b"code")
    assert store.get(name) == b"code"
    assert store.get_or_make(name, lambda: pytest.fail("made again")) == b"code"
    assert store.get_or_make(key("other"), lambda: b"made") == b"made" and store.get(key("other")) == b"made"


def test_the_directory_is_private(store):
    store.put(key("x"), b"x")
    for path in (store.directory, *(p for p in store.directory.iterdir())):
        assert path.stat().st_mode & 0o777 == 0o700
    assert files(store)[0].stat().st_mode & 0o077 == 0


def test_keys_depend_on_every_part_and_their_borders():
    names = [key("a", "b"), key("ab"), key("a", "b", ""), key("b", "a"), key(b"ab\0")]
    assert len(set(names)) == len(names) and key("a", "b") == names[0]
    assert "torch" in versions() and "llvmlite" in versions() and "monograph" in versions()


@pytest.mark.parametrize("damage", [
    lambda data: data[:-1], lambda data: b"", lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    lambda data: b"x" + data[1:], lambda data: data[:20] + b"?" + data[21:], lambda data: b"garbage",
])
def test_damaged_entries_are_made_again(store, damage):
    name = key("text")
    store.put(name, b"code")
    path, = files(store)
    path.write_bytes(damage(path.read_bytes()))
    assert store.get(name) is None
    assert store.get_or_make(name, lambda: b"code") == b"code"
    assert store.get(name) == b"code"


def test_an_entry_under_the_key_of_another_is_made_again(store):
    first, second = key("first"), key("second")
    store.put(first, b"code of the first")
    store.put(second, b"code of the second")
    store._path(second).write_bytes(store._path(first).read_bytes())
    assert store.get(second) is None and store.get(first) == b"code of the first"
    assert store.get_or_make(second, lambda: b"made") == b"made"


def test_a_folder_in_the_place_of_an_entry(store):
    name = key("text")
    store._path(name).mkdir(parents=True)
    assert store.get(name) is None and store.get_or_make(name, lambda: b"made") == b"made"


def test_entries_used_longest_ago_go_first(tmp_path):
    cache = Cache(tmp_path, limit=3 * (len(cache_module.MAGIC) + 32 + 1000))
    for number in range(3):
        cache.put(key(str(number)), bytes(1000))
        os.utime(cache._path(key(str(number))), (number + 1, number + 1))
    assert cache.get(key("0")) is not None      # and so is no longer the oldest
    cache.put(key("3"), bytes(1000))
    cache.sweep()
    assert [cache.get(key(str(number))) is not None for number in range(4)] == [True, False, True, True]


def test_leftovers_of_died_processes_go(store):
    store.put(key("x"), b"x")
    left = files(store)[0].parent / ".tmp-left"
    left.write_bytes(b"half")
    store.sweep()
    assert left.exists()                         # its writer may be at work
    os.utime(left, (1, 1))
    store.sweep()
    assert not left.exists() and store.get(key("x")) == b"x"


def test_deleted_directories_do_not_matter(store):
    store.put(key("x"), b"x")
    for path in files(store):
        path.unlink()
        path.parent.rmdir()
    store.directory.rmdir()
    assert store.get(key("x")) is None
    store.sweep()
    assert store.get_or_make(key("x"), lambda: b"y") == b"y" and store.get(key("x")) == b"y"


def refused(directory):
    opened.cache_clear()
    told = []

    def tell(text):
        told.append(text)

    assert opened(directory, tell) is None and opened(directory, tell) is None
    text, = told
    assert "MONOGRAPH_CACHE_DIR" in text
    return text


def test_directories_that_are_not_ours_are_refused_once(tmp_path, monkeypatch):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 12345)
        assert "another user" in refused(foreign)
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert "other users" in refused(shared)
    plain = tmp_path / "file"
    plain.write_text("")
    assert "is not a directory" in refused(plain)
    assert "cannot be made" in refused(plain / "below")
    (tmp_path / "dangling").symlink_to(tmp_path / "missing" / "x")
    assert "is not a directory" in refused(tmp_path / "dangling")
    assert "cannot be made" in refused(tmp_path / ("long" * 100))
    assert opened(None, unwanted) is None
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert "cannot be written" in refused(tmp_path / "locked")


def test_no_cache_while_the_package_is_edited(tmp_path, monkeypatch):
    """The running code may be older than the source that keys speak of."""
    started = cache_module._process_start()
    assert 0 < started <= cache_module._IMPORTED + 1
    monkeypatch.undo()
    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "_process_start", lambda: 0.0)
        cache_module.is_stable.cache_clear()
        opened.cache_clear()
        assert opened(tmp_path, unwanted) is None
    cache_module.is_stable.cache_clear()
    opened.cache_clear()


def test_a_readable_directory_of_ours_is_made_private(tmp_path):
    tmp_path.chmod(0o755)
    opened.cache_clear()
    assert opened(tmp_path, unwanted) is not None and tmp_path.stat().st_mode & 0o777 == 0o700


def test_permissions_that_the_user_took_away_stay_away(tmp_path):
    tmp_path.chmod(0o555)
    opened.cache_clear()
    opened(tmp_path, lambda text: None)
    assert tmp_path.stat().st_mode & 0o777 == 0o500
    tmp_path.chmod(0o700)


def test_a_full_disk_is_not_an_error(store, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    store.put(key("x"), b"x")
    assert store.get(key("x")) is None and files(store) == []


def test_threads_and_processes_share_a_store(store):
    names = [key(str(number)) for number in range(20)]
    wrong = []

    def work():
        wrong.extend(
            name for name in names for _ in range(5)
            if store.get_or_make(name, lambda name=name: name.encode() * 500) != name.encode() * 500
        )

    workers = [threading.Thread(target=work) for _ in range(4)]
    code = (
        "import sys; from pathlib import Path; from monograph.cache import Cache\n"
        f"cache = Cache(Path({str(store.directory)!r}))\n"
        f"assert all(cache.get_or_make(n, lambda: n.encode() * 500) == n.encode() * 500 for n in {names!r} * 5)\n"
    )
    others = [subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and [other.wait() for other in others] == [0, 0]
    assert len(files(store)) == len(names)
