"""Data frames of pandas, which is not installed for the tests."""


class PandasColumn:
    """The parts of a Series that this project uses."""

    def __init__(self, values):
        self.index, self.to_dict = list(values), lambda: values

    def __iter__(self):
        return iter(self.to_dict().values())

    def to_list(self):
        return list(self)


class PandasFrame:
    """The parts of a DataFrame that this project uses."""

    def __init__(self, columns):
        self._columns = {name: list(v) for name, v in columns.items()}
        self.columns = [*self._columns]

    def __getitem__(self, name):
        return PandasColumn(dict(enumerate(self._columns[name])))

    def __len__(self):
        return max(map(len, self._columns.values()), default=0)

    def itertuples(self, index, name):
        assert (index, name) == (False, None)
        return zip(*self._columns.values(), strict=True)

    def assign(self, **columns):
        return PandasFrame({**self._columns, **columns})


class NotAvailable:
    """`pandas.NA`: comparing it gives it again, and it has no truth value."""

    def __ne__(self, _):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")
