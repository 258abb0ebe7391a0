"""python -m loadline.torch.estimate (session/estimate_command.py)."""
from __future__ import annotations

import sys

if __name__ == "__main__":
    from loadline.torch.session.config_file import refuse_early

    refuse_early(sys.argv[1:])
    from loadline.torch.session.estimate_command import main

    main()
else:
    from loadline.torch.session.estimate import estimate

    # `import loadline.torch.estimate` must not put a module in the function's place.
    sys.modules[__name__] = estimate  # type: ignore[assignment]
