"""A run as one HTML file.

``contents.py`` gathers what a run has to tell, ``curves.py`` its records as charts, ``translations.py`` its dev
sentences, ``maps.py`` its attention as compact data, ``page.py`` makes the page of ``page.html``, ``.css`` and ``.js``.
"""
