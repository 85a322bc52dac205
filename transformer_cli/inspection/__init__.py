"""What a model sees and does: masks, heads, maps, and whether its training is sound."""
