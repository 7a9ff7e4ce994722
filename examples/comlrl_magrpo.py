"""comlrl's `MAGRPOTrainer` trains two writers of a story, over two turns.

pip install 'mlrl[learners,data]' comlrl
python examples/comlrl_magrpo.py Qwen/Qwen2.5-0.5B-Instruct --tasks 16
"""

import argparse

from comlrl.trainers.reinforce import MAGRPOConfig, MAGRPOTrainer
from transformers import AutoModelForCausalLM, AutoTokenizer

from mlrl_learners.interop import TeamView

parser = argparse.ArgumentParser(description="MAGRPO of comlrl on mlrl/story-v1")
parser.add_argument("model", help="name on the hub, or folder")
parser.add_argument("--tasks", type=int, default=16)
parser.add_argument("--tokens", type=int, default=128)
parser.add_argument("--joint-mode", default="aligned")
parser.add_argument("--out", default="runs/comlrl")
arguments = parser.parse_args()

tokenizer = AutoTokenizer.from_pretrained(arguments.model)
view = TeamView("mlrl/story-v1", tokenizer=tokenizer, reward="paper", max_turns=2)
given = view.arguments()
given["train_dataset"] = given["train_dataset"].select(range(arguments.tasks))
trainer = MAGRPOTrainer(
    agents=[AutoModelForCausalLM.from_pretrained(arguments.model) for _ in view.agents],
    tokenizer=[tokenizer for _ in view.agents],
    args=MAGRPOConfig(
        num_agents=len(view.agents),
        num_turns=2,
        num_train_epochs=1,
        num_generations=2,
        joint_mode=arguments.joint_mode,
        max_new_tokens=arguments.tokens,
        temperature=0.8,
        top_p=0.95,
        agent_learning_rate=1e-5,
        early_termination_threshold=None,
        eval_interval=0,
    ),
    **given,
)
trainer.train()
for agent, model in zip(view.agents, trainer.agents, strict=True):
    model.save_pretrained(f"{arguments.out}/{agent}")
print(f"{trainer.env_step} joint actions were scored")
