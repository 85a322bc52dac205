"""From a run to a folder that another engine answers from, without torch and without this package."""
