"""Tables of facts about the native libraries and the ops."""
