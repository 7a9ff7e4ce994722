import json

import mlrl_envs
from mlrl_envs.tools.calls import ToolCall
from mlrl_envs.tools.search import Index
from mlrl_envs.tools.toolbox import TOOLS, Request, describe_tools, run_requests, tool_schemas


def test_schemas_have_the_form_of_openai_and_the_order_of_the_prompt():
    for schema, (name, tool) in zip(tool_schemas(), TOOLS.items(), strict=True):
        assert schema["type"] == "function"
        function = schema["function"]
        assert (function["name"], function["description"]) == (name, tool.description)
        assert function["parameters"]["type"] == "object"
        assert function["parameters"]["required"] == list(function["parameters"]["properties"])
        assert f"- {name}({', '.join(tool.parameters)})" in describe_tools()


def test_every_parameter_is_a_required_text_with_a_description():
    for schema in tool_schemas():
        for each in schema["function"]["parameters"]["properties"].values():
            assert each["type"] == "string"
            assert each["description"]


def test_schemas_are_json_and_no_caller_can_change_them_for_another():
    assert json.loads(json.dumps(tool_schemas())) == tool_schemas()
    tool_schemas()[0]["function"]["name"] = "other"
    assert tool_schemas()[0]["function"]["name"] == "calculator"


def test_a_call_with_the_parameters_of_its_schema_is_not_malformed():
    family = mlrl_envs.make("mlrl/tools-v1", split="sample").family
    for schema in family.tools():
        function = schema["function"]
        if TOOLS[function["name"]].kind:
            continue  # runs in the sandbox
        call = ToolCall(function["name"], dict.fromkeys(function["parameters"]["required"], "1"))
        ((result,),) = run_requests([Request((), (("solver", call),), Index(()), 1.0)], None)
        assert result.status in ("ok", "error")
