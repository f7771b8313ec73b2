#!/usr/bin/env bash
# The names of ImageNet's classes in the repository are those of the installed torchvision.
set -euo pipefail
exec "$PYTHON" tools/make_imagenet_labels.py --check
