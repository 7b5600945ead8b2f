"""What the watches have brought: objects by kind, indexes over them, and the observation of one asset."""
