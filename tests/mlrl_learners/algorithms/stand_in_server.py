"""Server with the endpoints of vLLM and SGLang that the trainer uses, and a small model."""

import copy
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

__all__ = ["StandInServer"]


class StandInServer(ThreadingHTTPServer):
    """Answers `/v1/completions` with one token of a model, and loads weights from folders.

    Of n answers every token gets its share, by equally spaced numbers.
    """

    def __init__(self, model, tokenizer, eos_ids):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model, self.tokenizer, self.eos_ids = model, tokenizer, eos_ids
        self.base = model
        self.version = "0"
        self.calls, self.broken = [], False
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def __enter__(self):
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return super().__enter__()

    def __exit__(self, *error):
        self.shutdown()
        self.thread.join()
        super().__exit__(*error)

    def answer(self, path, request):
        if path == "/v1/completions":
            return self._complete(request)
        self.calls.append((path, request))
        if self.broken:
            return {"success": False, "message": "no such folder"}
        if path == "/collective_rpc" and request["method"] == "reload_weights":
            self._load(request["kwargs"]["weights_path"])
        elif path == "/update_weights_from_disk":
            self._load(request["model_path"])
            self.version = request["weight_version"]
        elif path == "/v1/load_lora_adapter" and request["load_inplace"]:
            base = copy.deepcopy(self.base)  # which peft changes
            adapted = PeftModel.from_pretrained(base, request["lora_path"])
            self.model = adapted.eval()
        elif path != "/reset_prefix_cache":
            return None
        return {"success": True}

    def _load(self, folder):
        self.model = AutoModelForCausalLM.from_pretrained(folder).eval()

    @torch.no_grad()
    def _complete(self, request):
        ids = torch.tensor([request["prompt"]])
        logprobs = self.model(input_ids=ids).logits[0, -1].log_softmax(-1)
        spaced = (torch.arange(request["n"]) + 0.5) / request["n"]
        tokens = torch.searchsorted(logprobs.exp().cumsum(0), spaced).clamp(max=len(logprobs) - 1)
        choices = [
            {
                "index": place,
                "text": self.tokenizer.decode([token], skip_special_tokens=True),
                "finish_reason": "stop" if token in self.eos_ids else "length",
                "token_ids": [token],
                "logprobs": {"tokens": [], "token_logprobs": [float(logprobs[token])]},
            }
            for place, token in enumerate(tokens.tolist())
        ]
        metadata = {"weight_version": self.version}
        return {"object": "text_completion", "choices": choices, "metadata": metadata}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"] or 0)) or b"{}")
        found = self.server.answer(self.path, request)
        body = json.dumps(found or {"message": "no such path"}).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass
