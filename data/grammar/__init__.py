"""The seeded grammar behind the phrasebook corpus: English, German and Chinese side by side."""
