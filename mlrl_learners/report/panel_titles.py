"""Titles and units of the charts of metrics that every learner has."""

__all__ = ["OF_AGENTS", "REWARD", "SAMPLERS", "SPEED"]

# Metric -> title and label of the vertical axis, in the order of the page.
REWARD = {
    "train/solved_rate": ("Solved", "share"),
    "train/return_std": ("Spread of returns", "standard deviation"),
    "train/turns": ("Turns", "turns an episode"),
    "train/failed_episodes": ("Lost to infrastructure", "episodes"),
}
OF_AGENTS = {
    "completion_tokens": ("Completion length", "tokens"),
    "loss": ("Loss", "loss"),
    "kl": ("Drift from the sampling policy", "KL, nats a token"),
    "kl_reference": ("Drift from the starting policy", "KL, nats a token"),
    "kl_sampler": ("Distance of the sampler from the policy", "KL, nats a token"),
    "importance_cut": ("Cut importance weights", "share"),
    "ratio_p5": ("Small importance ratios", "5th percentile"),
    "ratio_p50": ("Median importance ratio", "50th percentile"),
    "ratio_p95": ("Large importance ratios", "95th percentile"),
    "entropy": ("Entropy", "nats a token"),
    "grad_norm": ("Gradient norm", "L2 norm"),
    "truncated_rate": ("Answers cut by the limit", "share"),
    "zero_variance_rate": ("Groups of equal returns", "share"),
    "clip_fraction": ("Clipped tokens", "share"),
    "lr": ("Learning rate", "step size"),
    "tokens_per_second": ("Speed of an agent", "tokens a second"),
}
SPEED = {
    "time/tokens_per_second": ("Speed", "tokens a second"),
    "time/rollout_seconds": ("Time in rollouts", "seconds"),
    "time/update_seconds": ("Time in updates", "seconds"),
    "train/tokens": ("Tokens", "tokens an iteration"),
}
# Of samplers beside the learner: title, label, and label of each line -> metric.
SAMPLERS = (
    ("Age of the sampling weights", "updates", {"": "sampler/policy_age"}),
    (
        "Version of the sampling weights",
        "version",
        {"oldest": "sampler/oldest_weights", "newest": "sampler/newest_weights"},
    ),
    (
        "Waits",
        "seconds",
        {
            "learner, for rollouts": "sampler/rollouts_wait_seconds",
            "samplers, for weights": "sampler/weights_wait_seconds",
        },
    ),
    ("Replaced samplers", "processes so far", {"": "sampler/replaced"}),
)
