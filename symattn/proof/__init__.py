"""Claims about tensors, decided: proved with a proof, refuted with a counterexample, or unknown."""
