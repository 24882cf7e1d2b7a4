"""Gradients: the joint graph that capture records is split here into a forward and a backward one."""
