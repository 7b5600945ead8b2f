"""What the process keeps up beside its answers: certificates, creation rules, and recorded activity of holders."""
