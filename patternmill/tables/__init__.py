"""Sheets, checks and results as DataFrames of text: the only package that imports pandas."""

import gc

import pandas as pd

#: Where pyarrow is installed, pandas would keep texts in it, which changes what a missing cell is.
pd.set_option("mode.string_storage", "python")
# Modules live as long as the process. To look through pandas for garbage again and again takes a third of a check.
gc.freeze()
