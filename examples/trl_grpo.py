"""TRL's `GRPOTrainer` learns to write one half of a story; its teammate's half is given.

pip install 'mlrl[learners,data]' trl
python examples/trl_grpo.py Qwen/Qwen2.5-0.5B-Instruct --steps 100
"""

import argparse

from trl import GRPOConfig, GRPOTrainer

from mlrl_learners import ScriptedActor
from mlrl_learners.interop import SingleAgentView

parser = argparse.ArgumentParser(description="GRPO on a single agent's view of mlrl/story-v1")
parser.add_argument("model", help="name on the hub, or folder")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--tokens", type=int, default=128)
parser.add_argument("--out", default="runs/trl")
arguments = parser.parse_args()

view = SingleAgentView(
    "mlrl/story-v1",
    agent="story",
    teammates=ScriptedActor(lambda *_: "A fox waits in the snow for the ferryman."),
    reward="paper",
)
trainer = GRPOTrainer(
    model=arguments.model,
    reward_funcs=view.reward,
    train_dataset=view.dataset(),
    args=GRPOConfig(
        output_dir=arguments.out,
        max_steps=arguments.steps,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=arguments.tokens,
        learning_rate=1e-5,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        bf16=False,
    ),
)
trainer.train()
trainer.save_model(arguments.out)
for entry in trainer.state.log_history:
    if "reward" in entry:
        print(f"step {entry['step']}: reward {entry['reward']:.4f}")
