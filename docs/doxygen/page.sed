# Links to other pages and to headings would lead nowhere from the reference: their text stays.
/^```cpp/,/^```$/!s,\[([^]]*)\]\([^):]*\),\1,g
