"""How well a library answers: questions with known answers, measures, and simple methods to compare with."""
