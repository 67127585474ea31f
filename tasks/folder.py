"""The folder of a deployment's runs: a run enters it once its code is loaded, so that none is loaded from there."""

import os

_VARIABLE = "PATTERNMILL__FOLDER"


def work_in(directory: str) -> None:
    """Have the run that is about to begin work in a folder: a pull step."""
    os.environ[_VARIABLE] = directory


def enter() -> None:
    """Enter the folder in which this run works, if it has one."""
    if directory := os.environ.get(_VARIABLE):
        os.chdir(directory)
