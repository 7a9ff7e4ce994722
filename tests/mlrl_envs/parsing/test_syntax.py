import gc
import threading

from mlrl_envs.parsing.text import parse_code


def test_many_threads_build_trees_at_once():
    source = "\n".join(f"def f{i}(x):\n    return [x, {{x: ({i}, x)}}]" for i in range(100))
    errors = []

    def work():
        try:
            assert all(parse_code(source).tree is not None for _ in range(5))
        except BaseException as error:
            errors.append(error)

    # A callback of the collector is Python code, and lets threads change places in mid-tree.
    gc.callbacks.append(lambda *_: None)
    try:
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.callbacks.pop()
    assert not errors
