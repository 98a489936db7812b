"""The module calls that contain the code between two comparisons, which are suspects if the second one differs."""

from typing import NamedTuple

from emberharmony.testing.models.watching import ENTER, EXIT, Event


class _Alone(NamedTuple):
    """An event that could not be compared, the call that produces its values, and the call that receives them."""

    event: Event
    culprit: Event
    within: Event


class Spans:
    """Follows the events of the first model, and names the calls that contain the code between two comparisons.

    A value that has no counterpart, such as the padded image that a convolution gets, is no difference yet: the next
    value that has one, in the same call or at its end, tells whether they agree.
    """

    def __init__(self) -> None:
        self._around: list[Event] = []
        self._alone: list[_Alone] = []
        self._blamed = self._outer = Event("", 0, EXIT)

    def follow_event(self, event: Event) -> None:
        """Follows the next event: the beginning or the end of a module's call."""
        if event.place == ENTER:
            self._blamed = self._outer = self._around[-1] if self._around else event
            self._around.append(event)
            return
        while self._around and self._around.pop().path != event.path:
            pass
        self._blamed = event
        self._outer = self._around[-1] if self._around else event

    def mark_uncompared(self, event: Event) -> None:
        """Notes that the last event cannot be compared."""
        inner_event = event if event.place == ENTER else self._outer
        self._alone = [
            span if span.within.path != event.path else span._replace(within=inner_event) for span in self._alone
        ]
        self._alone.append(_Alone(event, self._blamed, inner_event))

    def mark_equal(self, event: Event) -> None:
        """Notes that the last event agrees, which clears the events in its call that could not be compared."""
        if event.place == EXIT:
            self._alone = [span for span in self._alone if span.within.path != event.path]

    def suspects(self, event: Event) -> tuple[list[Event], list[Event]]:
        """Returns the calls whose code may give an event that differs, the likeliest first, and the events of it.

        A call in it whose result has another form is likelier than the code around that, and this is likelier than
        the code before the call, whose arguments have another form.
        """
        inner_spans = [span for span in self._alone if span.within.path == self._blamed.path]
        result_culprits = [span.culprit for span in inner_spans if span.event.place == EXIT]
        entry_culprits = [span.culprit for span in inner_spans if span.event.place == ENTER]
        distinct_calls = dict.fromkeys([*result_culprits, self._blamed, *entry_culprits])
        return list(distinct_calls), [*(span.event for span in inner_spans), event]

    def uncompared_calls(self, is_entry: bool) -> tuple[list[Event], list[Event]]:
        """Returns modules and events that could not be compared by the end: results, or arguments if `is_entry`."""
        result_spans = [span for span in self._alone if span.event.place == EXIT]
        remaining_spans = result_spans or (self._alone if is_entry else [])
        return list(dict.fromkeys(span.culprit for span in remaining_spans)), [each.event for each in remaining_spans]
