"""What wrong input is told: one test for every list of such calls."""

import pytest


def refused(wrong):
    """A test of each (call, error, message) of a list: the call raises the error with the message."""

    @pytest.mark.messages
    @pytest.mark.parametrize("call, error, message", wrong)
    def test(call, error, message):
        with pytest.raises(error, match=message):
            call()

    return test
