"""What is stored of a window after it closes, and the consumer that writes it without a burst."""
