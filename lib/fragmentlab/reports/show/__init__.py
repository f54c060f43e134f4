"""What notebooks show: tables, figures and sentences."""
