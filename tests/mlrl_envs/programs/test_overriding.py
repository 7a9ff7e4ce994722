import ast
import textwrap

import pytest

from mlrl_envs.programs.overriding import overridden

ONE = [
    "self.add = f",
    "type(self).add = type(self).real_add",
    "cls = type(self)\ncls.add = f",
    "self.add: object = f",
    "for self.add in [f]: pass",
    "del Thing.add",
    "setattr(self, 'add', f)",
    "object.__setattr__(self, 'add', f)",
    "super().__setattr__('add', f)",
    "delattr(type(self), 'add')",
    "self.__dict__['add'] = f",
    "vars(self)['add'] = f",
    "exec('type(self).add = f')",
    "code = 'self.add = f'\neval(code)",
]
ALL = [
    "setattr(self, name, f)",
    "setattr(*args)",
    "s = setattr\ns(self, name, f)",
    "map(setattr, a, b, c)",
    "from builtins import setattr as s",
    "from unittest.mock import patch\nfrom unittest import mock",
    "self.__dict__[name] = f",
    "self.__dict__.update(add=f)",
    "vars(self).update(d)",
    "self.__dict__ |= {'add': f}",
    "d = self.__dict__\nd['add'] = f",
    "dict.__setitem__(self.__dict__, 'add', f)",
    "self.__class__ = Rest",
    "setattr(self, '__class__', Rest)",
    "type(self).add.__code__ = f.__code__",
    "Thing.add.__defaults__ = (f,)",
    "type(self).__getattribute__ = f",
    "eval('setattr(self, name, f)')",
]
NOTHING = [
    "self.add(1)",
    "self.added = self.add",
    "add = 1\nreturn add",
    "self.log('add')",
    "setattr(self, 'count', 1)",
    "return self.__dict__ == other.__dict__",
    "return json.dumps(self.__dict__)",
    "return vars(self)",
    "return self.__class__.__name__",
    "self.__total = 1",
    "wrapper.__name__ = 'add'",
    "'add, setattr'\nreturn eval(text, {'__builtins__': {}})",
    "d.update(add=1)\nd['add'] = 1",
    "self.size = 1",
]
NAMES = {"add", "remove", "size", "size.setter"}


def _overridden(code):
    return overridden(ast.parse(f"def f(self):\n{textwrap.indent(code, '    ')}").body, NAMES)


@pytest.mark.parametrize("code", ONE)
def test_a_method_that_is_set_by_its_name_is_found(code):
    assert _overridden(code) == {"add"}


@pytest.mark.parametrize("code", ALL)
def test_code_that_may_set_any_attribute_sets_all(code):
    assert _overridden(code) == NAMES


@pytest.mark.parametrize("code", NOTHING)
def test_other_code_sets_no_method(code):
    assert _overridden(code) == set()


def test_a_property_that_is_set_on_the_class_is_found():
    assert _overridden("type(self).size = property(f)") == {"size", "size.setter"}
