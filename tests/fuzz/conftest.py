"""How long a round of fuzzing is: FUZZ_EXAMPLES per test (`make fuzz` repeats rounds for minutes)."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "300")),
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile("fuzz")
