"""Services that live on the database, over the wire: what people build with it."""
