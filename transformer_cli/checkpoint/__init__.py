"""One run folder: save, load, resume.

``run_folder.py`` the folder of a run, ``snapshot.py`` one checkpoint in it, ``loading.py`` a trained model from either,
``tensor_files.py`` tensors as bytes, ``durable.py`` writes that survive a crash.
"""

from transformer_cli.checkpoint.loading import build_model, load_model, newest_run, open_model, weights_file
from transformer_cli.checkpoint.run_folder import RunFolder
from transformer_cli.checkpoint.run_info import read_info, run_folders
from transformer_cli.checkpoint.snapshot import CheckpointState

__all__ = [
    "CheckpointState",
    "RunFolder",
    "build_model",
    "load_model",
    "newest_run",
    "open_model",
    "read_info",
    "run_folders",
    "weights_file",
]
