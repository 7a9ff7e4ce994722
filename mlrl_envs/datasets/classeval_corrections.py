"""Corrections of ClassEval's rows, and docstring examples that are wrong.

Skeletons 5, 22, 43 and 46 do not parse in the original: a quote is not closed, or quotes are
typographic. 25 and 49 lack a method that the tests call; it is added with a new docstring. 92 lacks
an import that `import_statement` contains.
"""

from mlrl_envs.errors import InvalidDataError

__all__ = ["CONTRADICTED", "correct_field"]

_SET_COOKIES = '''\
    def set_cookies(self, request):
        """
        Writes the cookies into the request under the key 'cookies', as one string
        'key=value; key=value'.
        :param request: The request that the cookies are written into, dict.
        :return: None
        """
'''
_MATCHES_REQUIREMENTS = '''\
    @staticmethod
    def matches_requirements(resume, requirements):
        """
        Tells whether every skill of a resume is among the requirements.
        :param resume: The resume information, dict.
        :param requirements: The requirements of a position, list.
        :return: True if so, False otherwise.
        """
'''

# Row, field, original text and its replacement; an empty original appends to the end.
_CORRECTIONS = (
    ("ClassEval_5", "skeleton", "'''\n# This class", "# This class"),
    ("ClassEval_5", "skeleton", "'''", ""),
    (
        "ClassEval_22",
        "skeleton",
        '["CS101", "CS102"]\n',
        '["CS101", "CS102"]\n        """\n',
    ),
    ("ClassEval_25", "skeleton", "", "\n" + _SET_COOKIES),
    ("ClassEval_43", "skeleton", "“”“", '"""'),
    ("ClassEval_46", "skeleton", "”“”", '"""'),
    ("ClassEval_49", "skeleton", "", "\n" + _MATCHES_REQUIREMENTS),
)

# Methods whose docstring example the data set's solution does not pass (another result, a wrong
# call, a missing file, the time of day); these examples are not used as public tests.
CONTRADICTED: dict[str, tuple[str, ...]] = {
    "ClassEval_2": (
        "get_argument",
        "_convert_type",
    ),
    "ClassEval_4": ("get_all_students_with_fail_course",),
    "ClassEval_12": ("create_deck",),
    "ClassEval_16": ("apply_operator",),
    "ClassEval_22": ("get_all_major",),
    "ClassEval_26": (
        "read_csv",
        "process_csv_data",
    ),
    "ClassEval_36": ("send_to",),
    "ClassEval_40": (
        "condition_judge",
        "calculate_calorie_intake",
    ),
    "ClassEval_50": (
        "read_json",
        "write_json",
        "process_json",
    ),
    "ClassEval_53": ("find_longest_word",),
    "ClassEval_54": (
        "is_valid_move",
        "has_path",
        "is_game_over",
    ),
    "ClassEval_58": ("generate_mine_sweeper_map",),
    "ClassEval_62": (
        "construct_stop_word_list",
        "remove_stop_words",
        "process",
    ),
    "ClassEval_71": ("move",),
    "ClassEval_72": (
        "match",
        "findall",
        "split",
        "sub",
        "generate_email_pattern",
        "generate_phone_number_pattern",
    ),
    "ClassEval_76": ("sign_in",),
    "ClassEval_84": ("read_file_as_json",),
    "ClassEval_87": (
        "get_current_time",
        "get_current_date",
        "add_seconds",
        "datetime_to_string",
    ),
    "ClassEval_92": ("validate_user_login",),
    "ClassEval_97": ("is_valid_input",),
    "ClassEval_98": (
        "write_xml",
        "process_xml_data",
    ),
}


def correct_field(task_id: str, field: str, text: str) -> str:
    """Return a field of a row with its corrections applied.

    Args:
        task_id: The row.
        field: Name of the field.
        text: The original value.

    Raises:
        InvalidDataError: If the text to be corrected is not found.
    """
    for row, part, broken, whole in _CORRECTIONS:
        if (row, part) != (task_id, field):
            continue
        if broken not in text:
            raise InvalidDataError(f"{task_id} lacks {broken!r} in its {field}")
        text = text.replace(broken, whole) if broken else text.rstrip() + "\n" + whole
    return text
