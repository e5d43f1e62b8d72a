"""The Event Processor takes page visits and puts them on the stream."""
